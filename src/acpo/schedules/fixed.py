"""Budgets that never move: the desired ones, or none at all."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.config import Config
from acpo.learning.networks import Policy
from acpo.problem import MAX_REWARD, Problem, max_reward
from acpo.schedules.base import Report, Schedule


class FixedState(NamedTuple):
    budgets: jax.Array
    """[K]"""


def init(config: Config, desired: jax.Array, policy: Policy) -> FixedState:
    return FixedState(desired)


def init_unlimited(config: Config, desired: jax.Array, policy: Policy) -> FixedState:
    """For unconstrained baselines: every cost is free, whatever is desired."""
    return FixedState(jnp.full_like(desired, jnp.inf))


def update(
    config: Config, state: FixedState, returns: jax.Array, policy: Policy, iteration: jax.Array
) -> tuple[FixedState, Problem]:
    return state, max_reward(state.budgets)


def report(state: FixedState) -> Report:
    return Report(
        budgets=state.budgets,
        reward_budget=jnp.zeros(()),
        stage=jnp.full((), MAX_REWARD, jnp.int32),
        events=jnp.zeros((), jnp.int32),
        finished=jnp.zeros((), bool),
    )


SCHEDULE = Schedule(init, update, report, anchor=None)
UNLIMITED = Schedule(init_unlimited, update, report, anchor=None)
