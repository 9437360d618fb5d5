"""Tasks by name: `register` a factory once, `make` it anywhere."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from acpo.errors import UserError, nearest
from acpo.tasks.base import DeviceTask, HostTask

Task = DeviceTask | HostTask
Factory = Callable[..., Task]
"""Called as `factory(num_envs=…, backend=…, **options)`; backend is "auto", "native" or "mjx"."""

_FACTORIES: dict[str, tuple[Factory | str, dict[str, Any]]] = {}


def register(name: str, factory: Factory | str, **options: Any) -> None:
    """Make `name` known to `acpo.make` and the command line; `options` go to the factory.

    A string "package.module:function" is imported only when the task is made, so that listing
    tasks does not load their simulators.
    """
    _FACTORIES[name] = (factory, options)


def names() -> list[str]:
    return sorted(_FACTORIES)


def make(name: str, num_envs: int, backend: str = "auto", **options: Any) -> Task:
    """A batch of `num_envs` environments of a registered task, or of "package.module:factory"."""
    if name not in _FACTORIES:
        if ":" in name:
            from acpo.tasks import gym  # noqa: PLC0415

            return gym.from_path(name, num_envs=num_envs, **options)
        raise UserError(f"There is no task '{name}'; {nearest(name, names())}")
    factory, preset = _FACTORIES[name]
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(importlib.import_module(module), attribute)
    return factory(num_envs=num_envs, backend=backend, **(preset | options))
