"""Tasks: what is learned. See `base` for the contract and `registry` for their names."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from acpo.catalogue import TASKS
from acpo.tasks.base import Box, DeviceTask, Discrete, HostTask, Reset, TaskSpec, TimeStep
from acpo.tasks.registry import make, names, register

if TYPE_CHECKING:
    from acpo.tasks.tabular import TabularCMDP

for _name, (_factory, _options) in TASKS.items():
    register(_name, _factory, **_options)

__all__ = [
    "Box",
    "DeviceTask",
    "Discrete",
    "HostTask",
    "Reset",
    "TabularCMDP",
    "TaskSpec",
    "TimeStep",
    "make",
    "names",
    "register",
]


def __getattr__(name: str) -> Any:
    """Tabular tasks arrive at first use: only they need SciPy's optimiser."""
    if name == "TabularCMDP":
        return importlib.import_module("acpo.tasks.tabular").TabularCMDP
    raise AttributeError(f"module 'acpo.tasks' has no attribute '{name}'")
