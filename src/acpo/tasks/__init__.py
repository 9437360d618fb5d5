"""Tasks: what is learned. See `base` for the contract and `registry` for their names."""

from acpo.tasks.base import Box, DeviceTask, Discrete, HostTask, Reset, TaskSpec, TimeStep
from acpo.tasks.registry import make, names, register

for _robot in ("Point", "Car"):
    for _goal in ("Goal", "Circle"):
        for _level in range(3):
            register(
                f"{_robot}{_goal}{_level}",
                "acpo.tasks.navigation:make",
                robot=_robot,
                goal=_goal,
                level=_level,
            )
register("Tabular", "acpo.tasks.tabular:make")
register("Tabular2", "acpo.tasks.tabular:make", costs=2)
register("Go1", "acpo.tasks.quadruped:make")

__all__ = [
    "Box",
    "DeviceTask",
    "Discrete",
    "HostTask",
    "Reset",
    "TaskSpec",
    "TimeStep",
    "make",
    "names",
    "register",
]
