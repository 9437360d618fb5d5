"""MuJoCo's renderer with whatever graphics a machine has.

A machine without a display needs one system package: libegl1 (its driver comes along, or from the
graphics card's vendor), or else libosmesa6.
"""

from __future__ import annotations

import importlib
import os

import mujoco

from acpo.errors import UserError


def open_renderer(model: mujoco.MjModel, width: int, height: int) -> mujoco.Renderer:
    """A renderer with whatever graphics this machine has.

    MuJoCo chooses when it is imported, and without a display and MUJOCO_GL it chooses wrongly; so
    where nobody has chosen, EGL and then OSMesa are tried here.
    """
    ways = ["egl", "osmesa"]
    if os.environ.get("DISPLAY") or os.environ.get("MUJOCO_GL"):
        ways = [""]
    failures = []
    for way in ways:
        try:
            if way:
                # Imported here: it needs a window library, which machines that only compute lack.
                from mujoco.rendering.classic import gl_context  # noqa: PLC0415

                gl_context.GLContext = importlib.import_module(f"mujoco.{way}").GLContext
            return mujoco.Renderer(model, height, width)
        except Exception as error:
            failures.append(str(error))
            os.environ.pop("PYOPENGL_PLATFORM", None)  # set by the way that failed
    raise UserError(f"MuJoCo cannot draw here ({'; '.join(failures)}): install libegl1 or libosmesa6.")
