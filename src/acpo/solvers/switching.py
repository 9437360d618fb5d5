"""CRPO: improve the objective while every limit is kept, else the worst-broken signal (Xu et al., 2021).

Each step is a natural-gradient step without limits.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from acpo.config import Config
from acpo.learning.batch import Batch
from acpo.learning.networks import Critics, Policy
from acpo.problem import Problem, direction
from acpo.solvers import trust_region
from acpo.solvers.base import Solver, Update


def choose(config: Config, problem: Problem, returns: jax.Array) -> tuple[Problem, jax.Array]:
    """The unlimited problem of this step, and which signal it mends (−1: none, the objective).

    Violations are compared in units of their limit, so that costs of different sizes can be.
    """
    settings = config.switching
    scale = jnp.maximum(problem.scale(), 1e-8)
    tolerance = settings.tolerance * (scale if settings.tolerance_unit == "budget" else 1.0)
    violation = jnp.where(problem.limited(), -problem.slack(returns), -jnp.inf)
    broken = violation > tolerance
    worst = jnp.argmax(jnp.where(broken, violation / scale, -jnp.inf))
    any_broken = jnp.any(broken)
    signs = direction(returns.shape[0] - 1)
    mend = jnp.where(jnp.arange(returns.shape[0]) == worst, signs, 0.0)
    objective = jnp.where(any_broken, mend, problem.objective())
    free = Problem(
        reward_weight=objective[0],
        cost_weights=-objective[1:],
        anchor_weight=jnp.where(any_broken, 0.0, problem.anchor_weight),
        cost_limits=jnp.full_like(problem.cost_limits, jnp.inf),
        reward_limit=jnp.full_like(problem.reward_limit, -jnp.inf),
        reward_noise=problem.reward_noise,
    )
    return free, jnp.where(any_broken, worst, -1)


def update(
    config: Config,
    state: trust_region.TrustRegionState,
    policy: Policy,
    critics: Critics,
    problem: Problem,
    batch: Batch,
    key: jax.Array,
    progress: jax.Array,
) -> Update:
    chosen, signal = choose(config, problem, batch.returns)
    policy, metrics = trust_region.policy_step(config, policy, chosen, batch, progress)
    metrics["mended_signal"] = signal
    return trust_region.fit(config, state, policy, critics, batch, key, metrics)


SOLVER = Solver(trust_region.init, update)
