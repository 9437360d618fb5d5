"""Limits as multipliers that follow their violation, solved by PPO (PPO-Lag).

Every signal has one multiplier, the reward's included. Only the limits of the present problem are
learned and felt; the others rest.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.config import Config
from acpo.learning.batch import Batch
from acpo.learning.networks import Critics, Policy
from acpo.problem import Problem, direction
from acpo.solvers import ppo
from acpo.solvers.base import Solver, Update

SMALLEST = 1e-3
"""Multipliers are kept this far from zero when their reciprocal is taken."""


class LagrangianState(NamedTuple):
    ppo: ppo.PPOState
    multipliers: jax.Array
    """[1 + K]"""
    first_moment: jax.Array
    """[1 + K] of Adam"""
    second_moment: jax.Array
    """[1 + K] of Adam"""
    steps: jax.Array
    """[1 + K] Adam steps each multiplier has made"""
    limited: jax.Array
    """[1 + K] bool: what the last problem limited"""


def init(config: Config, policy: Policy, critics: Critics) -> LagrangianState:
    signals = critics.networks.biases[0].shape[0]
    return LagrangianState(
        ppo=ppo.init(policy, critics),
        multipliers=jnp.full(signals, config.lagrangian.initial),
        first_moment=jnp.zeros(signals),
        second_moment=jnp.zeros(signals),
        steps=jnp.zeros(signals),
        limited=jnp.zeros(signals, bool),
    )


def carry_over(config: Config, state: LagrangianState, limited: jax.Array) -> LagrangianState:
    """Multipliers for a problem that limits other signals than the last one did.

    At a point that solves both "most reward under cost budgets" and "least cost above a reward",
    the two gradients are opposed: ∇R = λ·∇C and ∇C = ∇R/λ. `rescale` uses that: a newly limited
    signal starts from the reciprocal of the multipliers that stood for the trade-off until now.
    """
    mode = config.lagrangian.on_stage_change
    fresh = limited & ~state.limited & jnp.any(state.limited)
    if mode == "hold":
        multipliers = state.multipliers
    elif mode == "reset":
        multipliers = jnp.where(fresh, config.lagrangian.initial, state.multipliers)
    else:
        was = jnp.where(state.limited & ~limited, state.multipliers, 0.0)
        left = jnp.maximum(was.max(), SMALLEST)
        reciprocal = jnp.clip(1 / left, SMALLEST, config.lagrangian.maximum)
        from_reward = state.limited[0] & ~limited[0]
        # Several costs share one trade-off: their own ratios are kept, their largest is rescaled.
        largest = jnp.maximum(jnp.where(fresh, state.multipliers, 0.0).max(), SMALLEST)
        scaled = jnp.where(from_reward, state.multipliers * reciprocal / largest, reciprocal)
        multipliers = jnp.where(fresh, scaled, state.multipliers)
    return state._replace(multipliers=multipliers, limited=limited)


def learn_multipliers(config: Config, state: LagrangianState, violation: jax.Array) -> LagrangianState:
    """One Adam ascent step on λ·violation [1 + K] for the limited signals, kept in [0, maximum]."""
    settings = config.lagrangian
    first = 0.9 * state.first_moment + 0.1 * violation
    second = 0.999 * state.second_moment + 0.001 * violation**2
    steps = state.steps + 1
    step = (first / (1 - 0.9**steps)) / (jnp.sqrt(second / (1 - 0.999**steps)) + 1e-8)
    moved = jnp.clip(state.multipliers + settings.learning_rate * step, 0.0, settings.maximum)

    def where_limited(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(state.limited, new, old)

    return state._replace(
        multipliers=where_limited(moved, state.multipliers),
        first_moment=where_limited(first, state.first_moment),
        second_moment=where_limited(second, state.second_moment),
        steps=where_limited(steps, state.steps),
    )


def update(
    config: Config,
    state: LagrangianState,
    policy: Policy,
    critics: Critics,
    problem: Problem,
    batch: Batch,
    key: jax.Array,
    progress: jax.Array,
) -> Update:
    limited = problem.limited()
    violation = jnp.where(limited, -problem.slack(batch.returns), 0.0)
    state = learn_multipliers(config, carry_over(config, state, limited), violation)
    damping = config.lagrangian.proportional * violation / jnp.maximum(problem.scale(), 1e-8)
    felt = jnp.clip(state.multipliers + damping, 0.0, config.lagrangian.maximum)
    penalties = jnp.where(limited, felt, 0.0)
    signs = direction(batch.returns.shape[0] - 1)
    weights = ppo.weights(problem.objective(), problem.anchor_weight, penalties, signs)
    policy, critics, moments, _, metrics = ppo.optimise(
        config, state.ppo, policy, critics, batch, key, progress, lambda _: weights
    )
    metrics["multipliers"] = penalties
    return Update(policy, critics, state._replace(ppo=moments), metrics)


SOLVER = Solver(init, update)
