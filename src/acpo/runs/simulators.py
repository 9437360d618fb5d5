"""From the name or the object of a task to what a trainer and an evaluation step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from acpo.config import Config
from acpo.errors import UserError
from acpo.tasks import registry
from acpo.tasks.base import DeviceTask, HostTask, TaskSpec

AnyTask = str | DeviceTask | HostTask | Callable[..., Any]


@dataclass(frozen=True)
class Source:
    """A task as the user named it, with what one trial copy showed about it."""

    name: str
    spec: TaskSpec
    recommended: Callable[[str], dict[str, Any]]
    """algorithm → settings by dotted name"""
    make: Callable[..., DeviceTask | HostTask]
    """(num_envs, **options) → a batch"""
    fixed_envs: int | None = None
    """The size of a host task that was given as an object, and so exists once."""
    on_device: bool = False


def find(task: AnyTask, backend: str = "auto") -> Source:
    """Where copies of `task` come from; a task that does not work is refused here."""
    if isinstance(task, str):
        return _named(task, backend)
    if isinstance(task, DeviceTask):
        return _source(task.spec().name, task, lambda num_envs, **_: task)
    if isinstance(task, HostTask):
        return _source(task.spec().name, task, lambda num_envs, **_: task, task.num_envs)
    if callable(task):
        return _environment(task)
    raise UserError(
        f"A task is a registered name, a task object or a function that makes a Gymnasium environment,"
        f" not a {type(task).__name__}."
    )


def build(source: Source, config: Config) -> DeviceTask | list[HostTask]:
    """What a trainer of `config` steps: one device task, or a host simulator for each seed."""
    first = source.make(config.rollout.envs * (config.seeds if source.on_device else 1))
    if isinstance(first, DeviceTask):
        return first
    if source.fixed_envs is not None and config.seeds > 1:
        raise UserError("A host task given as an object serves one seed; give a name or a function instead.")
    simulators = [first]
    for _ in range(config.seeds - 1):
        another = source.make(config.rollout.envs)
        assert isinstance(another, HostTask)
        simulators.append(another)
    return simulators


def for_evaluation(source: Source, num_envs: int) -> DeviceTask | HostTask:
    """A batch whose episodes are those that reported numbers are measured on: clocks start at
    zero, and what only helps training is off."""
    options = {"evaluation": True} if registry.accepts(source.name, "evaluation") else {}
    return source.make(source.fixed_envs or num_envs, **options)


def _named(name: str, backend: str) -> Source:
    def make(num_envs: int, **options: Any) -> DeviceTask | HostTask:
        if ":" not in name:
            return registry.make(name, num_envs, backend, **options)
        return registry.make(name, num_envs, **options)

    trial = make(1)
    source = _source(name, trial, make)
    if isinstance(trial, HostTask):
        trial.close()
    return source


def _environment(factory: Callable[..., Any]) -> Source:
    from acpo.tasks.gym.incoming import GymnasiumTask  # noqa: PLC0415

    name = getattr(factory, "__name__", "environment")

    def make(num_envs: int, **options: Any) -> HostTask:
        return GymnasiumTask(factory, num_envs, label=name, **options)

    trial = make(1)
    source = _source(name, trial, make)
    trial.close()
    return source


def _source(name: str, trial: Any, make: Callable[..., Any], fixed_envs: int | None = None) -> Source:
    recommend: Callable[[str], dict[str, Any]] = getattr(trial, "defaults", None) or (lambda algo: {})
    envs = {"rollout.envs": fixed_envs} if fixed_envs else {}
    on_device = isinstance(trial, DeviceTask)
    return Source(name, trial.spec(), lambda algo: recommend(algo) | envs, make, fixed_envs, on_device)
