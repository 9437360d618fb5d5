"""Limits as log-barriers φ(s) = κ·log(s) of their slack s, solved by PPO (Section 4.1, Algorithm 2).

The barrier's slope κ/s is the multiplier of a limit. It is capped at `penalty_max`, which is also
what a broken limit gets: beyond the cap the barrier goes on as a straight line, so that it has a
value and a slope everywhere.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from acpo.config import Config
from acpo.learning.batch import Batch
from acpo.learning.networks import Critics, Policy
from acpo.problem import Problem, direction
from acpo.solvers import ppo
from acpo.solvers.base import Solver, Update


def multiplier(slack: jax.Array, kappa: jax.Array, penalty_max: float) -> jax.Array:
    """λ = κ/s, at most `penalty_max`, which also holds where the slack is zero or negative."""
    inside = slack * penalty_max > kappa
    return jnp.where(inside, kappa / jnp.where(inside, slack, 1.0), penalty_max)


def barrier_value(slack: jax.Array, kappa: jax.Array, penalty_max: float) -> jax.Array:
    """κ·log(s), continued below s₀ = κ/penalty_max by its tangent there; its slope is `multiplier`."""
    knee = kappa / penalty_max
    inside = slack > knee
    tangent = kappa * jnp.log(knee) + penalty_max * (slack - knee)
    return jnp.where(inside, kappa * jnp.log(jnp.where(inside, slack, 1.0)), tangent)


def softness(config: Config, problem: Problem, progress: jax.Array) -> jax.Array:
    """[1 + K] κ of each limit."""
    settings = config.interior_point
    decay = settings.final_kappa**progress
    kappa = jnp.full(problem.cost_limits.shape[0] + 1, settings.kappa) * decay
    if settings.kappa_unit == "budget":
        kappa = kappa * problem.scale()
        kappa = kappa.at[0].set(settings.reward_kappa * problem.reward_noise)
    return jnp.maximum(kappa, 1e-8)


def init(config: Config, policy: Policy, critics: Critics) -> ppo.PPOState:
    return ppo.init(policy, critics)


def update(
    config: Config,
    state: ppo.PPOState,
    policy: Policy,
    critics: Critics,
    problem: Problem,
    batch: Batch,
    key: jax.Array,
    progress: jax.Array,
) -> Update:
    settings = config.interior_point
    limited = problem.limited()
    kappa = softness(config, problem, progress)
    signs = direction(batch.returns.shape[0] - 1)

    def multipliers(surrogates: jax.Array) -> jax.Array:
        slack = problem.slack(batch.returns + surrogates)
        return jnp.where(limited, multiplier(slack, kappa, settings.penalty_max), 0.0)

    def weigh(surrogates: jax.Array) -> ppo.Weights:
        penalties = multipliers(jnp.zeros_like(surrogates) if settings.reading == "measured" else surrogates)
        return ppo.weights(problem.objective(), problem.anchor_weight, penalties, signs)

    def barrier(surrogates: jax.Array) -> jax.Array:
        """Σ φ on one minibatch. Divided by the units of its signal, so that its slope weighs the
        same advantages as `weigh` does."""
        slack = problem.slack(batch.returns + surrogates)
        values = barrier_value(jnp.where(limited, slack, 1.0), kappa, settings.penalty_max)
        return jnp.sum(jnp.where(limited, values / batch.unit, 0.0))

    if settings.reading == "minibatch":
        plain = ppo.weights(problem.objective(), problem.anchor_weight, jnp.zeros_like(kappa), signs)
        result = ppo.optimise(config, state, policy, critics, batch, key, progress, lambda _: plain, barrier)
    else:
        result = ppo.optimise(config, state, policy, critics, batch, key, progress, weigh)
    policy, critics, state, _, metrics = result
    measured_at = jnp.zeros_like(batch.returns) if settings.reading == "measured" else metrics["surrogates"]
    metrics["multipliers"] = multipliers(measured_at)
    return Update(policy, critics, state, metrics)


SOLVER = Solver(init, update)
