"""What a schedule is: where budgets come from and which problem is next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from acpo.config import Config
from acpo.learning.networks import Policy
from acpo.problem import Problem


class Report(NamedTuple):
    """What a schedule shows of itself each iteration."""

    budgets: jax.Array
    """[K] d in force, +inf where free"""
    reward_budget: jax.Array
    """[] g of the last max-reward stage, 0 before the first"""
    stage: jax.Array
    """[] int, an index of `problem.STAGE_NAMES`"""
    events: jax.Array
    """[] int: convergence events so far"""
    finished: jax.Array
    """[] bool: the search for budgets has ended"""


class Schedule(NamedTuple):
    """A pure `(init, update)` pair over explicit state."""

    init: Callable[[Config, jax.Array, Policy], Any]
    """(config, desired budgets [K], policy) → state"""
    update: Callable[[Config, Any, jax.Array, Policy, jax.Array], tuple[Any, Problem]]
    """(config, state, measured returns [1 + K], policy they were measured on, iteration) →
    (state, problem of this iteration's update)"""
    report: Callable[[Any], Report]
    anchor: Callable[[Any], Policy] | None
    """The policy a projection stays near; None where no projection can happen."""
