"""Gymnasium both ways: other people's environments in, ours out.

`from_path` runs any Gymnasium environment with costs as a task; `register_gymnasium` makes our
tasks known to `gymnasium.make` and `gymnasium.make_vec`. Importing this module loads neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acpo.tasks.gym.incoming import GymnasiumTask

_OUTGOING = "acpo.tasks.gym.outgoing"
# What suits a person who steps an environment: clocks start at zero, numbers are exact.
_NAVIGATION_OPTIONS = {"random_phases": False, "dtype": "float64"}


def from_path(path: str, num_envs: int, **options: Any) -> GymnasiumTask:
    """A batch task from "package.module:factory", where `factory()` gives one environment.

    See `acpo.tasks.gym.incoming.GymnasiumTask` for the options.
    """
    from acpo.tasks.gym.incoming import from_path as build  # noqa: PLC0415

    return build(path, num_envs, **options)


def register_gymnasium() -> None:
    """Register "acpo/PointGoal1-v0" and its kin with Gymnasium, once."""
    import gymnasium  # noqa: PLC0415

    from acpo.tasks.registry import names  # noqa: PLC0415

    for name in names():
        options = _NAVIGATION_OPTIONS if name.startswith(("Point", "Car")) else {}
        env_id = f"acpo/{name}-v0"
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=f"{_OUTGOING}:TaskEnv",
                vector_entry_point=f"{_OUTGOING}:TaskVectorEnv",
                kwargs={"task": name, **options},
            )
