"""The Go1 quadruped: following velocity commands under eight constraints. See `docs/quadruped.md`."""

from __future__ import annotations

from typing import Any

import jax

from acpo.errors import UserError
from acpo.tasks.base import DeviceTask, HostTask
from acpo.tasks.quadruped.config import PRESETS, Go1Config, make_config
from acpo.tasks.quadruped.native import Go1Native

__all__ = ["PRESETS", "Go1Config", "make", "make_config"]


def make(
    num_envs: int,
    backend: str = "auto",
    *,
    preset: str = "default",
    evaluation: bool = False,
    threads: int | None = None,
    impl: str | None = None,
    max_worlds: int | None = None,
    **changes: Any,
) -> HostTask | DeviceTask:
    """A batch of Go1s.

    `backend` "native" simulates on threads, "mjx" in the compiled graph; "auto" takes "mjx" where
    JAX has an accelerator. `preset` is one of `PRESETS` and `changes` are fields of `Go1Config`.
    `evaluation` is the task that reported numbers are measured on (see `Go1Config.for_evaluation`).
    `threads` is for "native". For "mjx", `impl` is "jax" or "warp" (None: the faster one here) and
    `max_worlds` the most worlds in one program, which several seeds side by side multiply.
    """
    config = make_config(preset, **changes)
    if evaluation:
        config = config.for_evaluation()
    if backend == "auto":
        backend = "native" if jax.default_backend() == "cpu" else "mjx"
    if backend == "native":
        return Go1Native(config, num_envs, threads)
    if backend == "mjx":
        # MJX is an optional dependency.
        from acpo.tasks.quadruped.device import Go1Device  # noqa: PLC0415

        return Go1Device.create(config, max_worlds or num_envs, impl)
    raise UserError(f"There is no physics backend '{backend}'; known are: auto, native, mjx.")
