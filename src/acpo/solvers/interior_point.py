"""Limits as log-barriers φ(s) = κ·log(s) of their slack s, solved by PPO (Section 4.1, Algorithm 2).

The barrier's slope κ/s is the multiplier of a limit. It is capped at `penalty_max`, which is also
what a broken limit gets: beyond the cap the barrier goes on as a straight line, so that it has a
value and a slope everywhere.

Slacks move with the policy by what surrogates predict. These are evaluated on the batch that the
policy is fitted to, and flatter it: where costs are noisy, a tenth or less of a predicted change
comes true. So earlier predictions are compared with what was measured after them, and what
they are worth helps to see returns through the noise of one iteration's episodes.
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

MEMORY = 0.95
"""Weight of the past in what is known of predictions: about twenty updates."""


class Trust(NamedTuple):
    """Predicted changes of the returns beside those measured an iteration later, [1 + K] each."""

    estimate: jax.Array
    """of the returns at the last update"""
    known: jax.Array
    """[] bool: there was an update"""
    predicted: jax.Array
    """the change that it predicted"""
    product: jax.Array
    """Σ predicted · measured change, older ones weighing less"""
    square: jax.Array
    """Σ predicted²"""

    def after(self, returns: jax.Array, gain: float, calibrate: bool) -> Trust:
        """The last prediction compared with `returns`, measured now; these correct what was expected
        by the share `gain`."""
        learned = self._replace(
            product=MEMORY * self.product + self.predicted * (returns - self.estimate),
            square=MEMORY * self.square + self.predicted**2,
        )
        expected = self.estimate + (learned.share() if calibrate else 1.0) * self.predicted
        return learned._replace(
            estimate=jnp.where(self.known, expected + gain * (returns - expected), returns),
            known=jnp.ones((), bool),
            predicted=jnp.zeros_like(returns),
        )

    def share(self) -> jax.Array:
        """[1 + K] in [0, 1]: the part of a predicted change that comes true (least squares); 1 before
        there was any."""
        known = self.square > 0
        return jnp.where(known, jnp.clip(self.product / jnp.where(known, self.square, 1.0), 0.0, 1.0), 1.0)


class InteriorPointState(NamedTuple):
    ppo: ppo.PPOState
    trust: Trust


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


def aim(config: Config, problem: Problem, batch: Batch) -> jax.Array:
    """[1 + K] weights of the objective's advantages, in its unit."""
    objective = problem.objective()
    if config.interior_point.objective_unit == "signal":
        return objective
    size = jnp.std(batch.advantages @ objective)
    # A projection has no such objective.
    return objective / jnp.where(size > 0, size, 1.0)


def init(config: Config, policy: Policy, critics: Critics) -> InteriorPointState:
    nothing = jnp.zeros(critics.networks.biases[0].shape[0])
    return InteriorPointState(
        ppo.init(policy, critics), Trust(nothing, jnp.zeros((), bool), nothing, nothing, nothing)
    )


def update(
    config: Config,
    state: InteriorPointState,
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
    trust = state.trust.after(batch.returns, settings.gain, settings.calibrate)
    share = {
        "surrogate": trust.share() if settings.calibrate else jnp.ones_like(batch.returns),
        "measured": jnp.zeros_like(batch.returns),
        "minibatch": jnp.ones_like(batch.returns),
    }[settings.reading]

    def multipliers(surrogates: jax.Array) -> jax.Array:
        slack = problem.slack(trust.estimate + share * surrogates)
        return jnp.where(limited, multiplier(slack, kappa, settings.penalty_max), 0.0)

    objective = aim(config, problem, batch)

    def weigh(surrogates: jax.Array) -> ppo.Weights:
        return ppo.weights(objective, problem.anchor_weight, multipliers(surrogates), signs)

    def barrier(surrogates: jax.Array) -> jax.Array:
        """Σ φ on one minibatch. Divided by the units of its signal, so that its slope weighs the
        same advantages as `weigh` does."""
        slack = problem.slack(trust.estimate + surrogates)
        values = barrier_value(jnp.where(limited, slack, 1.0), kappa, settings.penalty_max)
        return jnp.sum(jnp.where(limited, values / batch.unit, 0.0))

    if settings.reading == "minibatch":
        plain = ppo.weights(objective, problem.anchor_weight, jnp.zeros_like(kappa), signs)
        result = ppo.optimise(
            config, state.ppo, policy, critics, batch, key, progress, lambda _: plain, barrier
        )
    else:
        result = ppo.optimise(config, state.ppo, policy, critics, batch, key, progress, weigh)
    policy, critics, moments, _, metrics = result
    metrics["multipliers"] = multipliers(metrics["surrogates"])
    metrics["trust"] = share
    trust = trust._replace(predicted=metrics["surrogates"])
    return Update(policy, critics, InteriorPointState(moments, trust), metrics)


SOLVER = Solver(init, update)
