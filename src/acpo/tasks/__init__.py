"""Tasks: what is learned. See `base` for the contract and `registry` for their names."""

from acpo.tasks.base import Box, DeviceTask, Discrete, HostTask, Reset, TaskSpec, TimeStep
from acpo.tasks.registry import make, names, register

for _robot_and_task in ("PointGoal", "CarGoal", "PointCircle", "CarCircle"):
    for _level in range(3):
        register(f"{_robot_and_task}{_level}", f"acpo.tasks.navigation:{_robot_and_task.lower()}{_level}")
register("Go1", "acpo.tasks.quadruped:make_go1")

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
