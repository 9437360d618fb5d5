"""The tasks that come with the package, and their ids in Gymnasium.

`import acpo` calls `register_gymnasium`, so this module imports nothing that takes time.
"""

from __future__ import annotations

from typing import Any

import gymnasium

_NAVIGATION = {
    f"{robot}{goal}{level}": ("acpo.tasks.navigation:make", {"robot": robot, "goal": goal, "level": level})
    for robot in ("Point", "Car")
    for goal in ("Goal", "Circle")
    for level in range(3)
}

TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    **_NAVIGATION,
    "Tabular": ("acpo.tasks.tabular:make", {}),
    "Tabular2": ("acpo.tasks.tabular:make", {"costs": 2}),
    "Go1": ("acpo.tasks.quadruped:make", {}),
}
"""Name → "package.module:factory" and the options that make it this task."""

_OUTGOING = "acpo.tasks.gym.outgoing"
# What suits a person who steps an environment: clocks start at zero, numbers are exact.
_NAVIGATION_OPTIONS = {"random_phases": False, "dtype": "float64"}


def register_gymnasium() -> None:
    """Register "acpo/PointGoal1-v0" and its kin with Gymnasium, once."""
    for name in TASKS:
        env_id = f"acpo/{name}-v0"
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=f"{_OUTGOING}:TaskEnv",
                vector_entry_point=f"{_OUTGOING}:TaskVectorEnv",
                kwargs={"task": name, **(_NAVIGATION_OPTIONS if name in _NAVIGATION else {})},
            )
