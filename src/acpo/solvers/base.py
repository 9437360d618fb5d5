"""What a solver is: one update of policy and critics on a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from acpo.config import Config
from acpo.learning.batch import Batch
from acpo.learning.networks import Critics, Policy
from acpo.problem import Problem

Metrics = dict[str, jax.Array]


class Update(NamedTuple):
    """What an update leaves behind."""

    policy: Policy
    critics: Critics
    state: Any
    """The solver's own state: optimiser moments, multipliers."""
    metrics: Metrics


class Solver(NamedTuple):
    """A pure `(init, update)` pair over explicit state."""

    init: Callable[[Config, Policy, Critics], Any]
    update: Callable[[Config, Any, Policy, Critics, Problem, Batch, jax.Array, jax.Array], Update]
    """(config, state, policy, critics, problem, batch, key, progress in [0, 1]) → Update"""
