"""Tasks by name: `register` a factory once, `make` it anywhere."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from acpo.errors import UserError, nearest
from acpo.tasks.base import DeviceTask, HostTask

Task = DeviceTask | HostTask
Factory = Callable[..., Task]
"""Called as `factory(num_envs=…, backend=…, **options)`; backend is "auto", "native" or "mjx". One that
has an argument `evaluation` is given True where numbers are measured that will be reported. A device
task is told the environments of all seeds, which share one program."""

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
    return _factory(name)(num_envs=num_envs, backend=backend, **(_FACTORIES[name][1] | options))


def accepts(name: str, option: str) -> bool:
    """Whether the factory of a registered task names `option` among its arguments."""
    return name in _FACTORIES and option in inspect.signature(_factory(name)).parameters


def _factory(name: str) -> Factory:
    factory = _FACTORIES[name][0]
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(importlib.import_module(module), attribute)
        assert callable(factory)
    return factory
