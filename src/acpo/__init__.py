"""Adversarial Constrained Policy Optimization and its baselines.

run = acpo.train("PointGoal1", algo="acpo", budget=25, steps=1_000_000)
run.policy(observation)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from acpo import catalogue
from acpo.errors import UserError

if TYPE_CHECKING:
    from acpo import algorithms, tasks
    from acpo.api import Run, evaluate, load, train
    from acpo.tasks import make, register

_HOMES = {
    "train": "acpo.api",
    "load": "acpo.api",
    "evaluate": "acpo.api",
    "Run": "acpo.api",
    "make": "acpo.tasks",
    "register": "acpo.tasks",
}
_MODULES = ("algorithms", "tasks")

__all__ = ["Run", "UserError", "algorithms", "evaluate", "load", "make", "register", "tasks", "train"]


def __getattr__(name: str) -> Any:
    """Names arrive at first use, so that `import acpo` does not start JAX."""
    if name in _MODULES:
        return importlib.import_module(f"acpo.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'acpo' has no attribute '{name}'")


catalogue.register_gymnasium()
