"""Point and Car, Goal and Circle: Safety-Gymnasium's navigation tasks, step for step, in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from acpo.errors import UserError
from acpo.tasks.navigation.circle import Circle
from acpo.tasks.navigation.episode import Rules
from acpo.tasks.navigation.goal import Goal
from acpo.tasks.navigation.host import NavigationTask
from acpo.tasks.navigation.robot import ROBOTS

if TYPE_CHECKING:
    from acpo.tasks.navigation.device import NavigationDeviceTask

GAMES: dict[str, type[Goal] | type[Circle]] = {"Goal": Goal, "Circle": Circle}


def rules(robot: str, goal: str, level: int) -> Rules:
    """The task of a robot ("Point", "Car") in a game ("Goal", "Circle") at a level (0, 1, 2)."""
    return Rules(ROBOTS[robot], GAMES[goal](level))


def make(
    num_envs: int,
    backend: str = "auto",
    *,
    robot: str,
    goal: str,
    level: int,
    evaluation: bool = False,
    **options: Any,
) -> NavigationTask | NavigationDeviceTask:
    """A batch of `num_envs` environments.

    `backend` "native" simulates on threads, "mjx" in the compiled graph; "auto" takes "mjx" where
    JAX has an accelerator. `evaluation` starts all clocks at zero, as numbers are reported.
    `options` go to `NavigationTask` or to `NavigationDeviceTask.create`.
    """
    if evaluation:
        options.setdefault("random_phases", False)
    if backend == "auto":
        backend = "native" if jax.default_backend() == "cpu" else "mjx"
    if backend == "native":
        return NavigationTask(rules(robot, goal, level), num_envs, **options)
    if backend == "mjx":
        from acpo.tasks.navigation.device import NavigationDeviceTask  # noqa: PLC0415

        return NavigationDeviceTask.create(rules(robot, goal, level), num_envs, **options)
    raise UserError(f"There is no backend '{backend}'; known are: auto, native, mjx.")
