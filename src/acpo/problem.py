"""What one policy update tries to do, as arrays.

    maximise    w_R·L_R(π) − Σ_i w_i·L_i(π) − w_A·KL(π ‖ π_anchor)
    subject to  Ĵ_i + L_i(π) ≤ d_i,   Ĵ_R + L_R(π) ≥ g,   KL ≤ δ

A limit that does not apply is infinite. Weights and limits are data: going from one stage to
another changes numbers in arrays and compiles nothing. K is the number of costs; a *signal* is
the reward (index 0) or a cost (1 … K).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

MAX_REWARD, MIN_COST, PROJECTION = 0, 1, 2
STAGE_NAMES = ("max-reward", "min-cost", "projection")


class Problem(NamedTuple):
    reward_weight: jax.Array
    """[] w_R"""
    cost_weights: jax.Array
    """[K] w_i"""
    anchor_weight: jax.Array
    """[] w_A"""
    cost_limits: jax.Array
    """[K] d_i, +inf where cost i is free"""
    reward_limit: jax.Array
    """[] g, −inf where the reward is free"""
    reward_noise: jax.Array
    """[] deviation of one measurement of the reward's return: the scale on which its limit is soft"""

    def objective(self) -> jax.Array:
        """[1 + K] weight of each signal's surrogate in the objective, to be maximised."""
        return jnp.concatenate([self.reward_weight[None], -self.cost_weights])

    def limited(self) -> jax.Array:
        """[1 + K] whether a limit applies to each signal."""
        return jnp.isfinite(jnp.concatenate([self.reward_limit[None], self.cost_limits]))

    def slack(self, returns: jax.Array) -> jax.Array:
        """[1 + K] room left under each limit at the returns [1 + K]: ≥ 0 means kept, +inf means free."""
        return jnp.concatenate([(returns[0] - self.reward_limit)[None], self.cost_limits - returns[1:]])

    def scale(self) -> jax.Array:
        """[1 + K] magnitude of each limit; 1 where there is none."""
        limits = jnp.concatenate([self.reward_limit[None], self.cost_limits])
        return jnp.where(jnp.isfinite(limits), jnp.abs(limits), 1.0)


def direction(num_costs: int) -> jax.Array:
    """[1 + K] +1 for the reward, whose growth widens its slack, −1 for costs."""
    return jnp.concatenate([jnp.ones(1), -jnp.ones(num_costs)])


def max_reward(budgets: jax.Array) -> Problem:
    """Stage 1: the most reward under cost budgets [K]. Infinite budgets leave a cost free."""
    return Problem(
        reward_weight=jnp.ones(()),
        cost_weights=jnp.zeros_like(budgets),
        anchor_weight=jnp.zeros(()),
        cost_limits=budgets,
        reward_limit=jnp.full((), -jnp.inf),
        reward_noise=jnp.zeros(()),
    )


def min_cost(
    violated: jax.Array, reward_limit: jax.Array, guards: jax.Array, reward_noise: jax.Array
) -> Problem:
    """Stage 2: the least sum of the violated costs ([K] bool) that keeps the reward above its limit.

    `guards` [K] are limits on costs already satisfied, +inf for none.
    """
    return Problem(
        reward_weight=jnp.zeros(()),
        cost_weights=violated.astype(guards.dtype),
        anchor_weight=jnp.zeros(()),
        cost_limits=guards,
        reward_limit=reward_limit,
        reward_noise=reward_noise,
    )


def projection(budgets: jax.Array) -> Problem:
    """Stage 3: stay as near as possible to the anchor policy under the moved budgets [K]."""
    return Problem(
        reward_weight=jnp.zeros(()),
        cost_weights=jnp.zeros_like(budgets),
        anchor_weight=jnp.ones(()),
        cost_limits=budgets,
        reward_limit=jnp.full((), -jnp.inf),
        reward_noise=jnp.zeros(()),
    )


def select(stage: jax.Array, problems: tuple[Problem, Problem, Problem]) -> Problem:
    """The problem of a stage given as data."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves)[stage], *problems)
