"""CPO: a linear model of objective and limits inside a KL trust region (Achiam et al., 2017).

Any number of limits, the reward's included. Without limits the step is TRPO's.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from acpo.config import Config
from acpo.learning.batch import Batch
from acpo.learning.networks import Critics, Policy
from acpo.problem import Problem, direction
from acpo.solvers import dual, natural_gradient, ppo
from acpo.solvers.base import Metrics, Solver, Update


class TrustRegionState(NamedTuple):
    critic_moments: optax.OptState


def init(config: Config, policy: Policy, critics: Critics) -> TrustRegionState:
    return TrustRegionState(ppo.ADAM.init(critics))


def policy_step(
    config: Config, policy: Policy, problem: Problem, batch: Batch, progress: jax.Array
) -> tuple[Policy, Metrics]:
    """One step on `problem`: linearise, solve the dual exactly, search along the step."""
    settings = config.trust_region
    bonus = settings.entropy * ppo.exploring(progress)
    flat = natural_gradient.flatten(policy)
    product = natural_gradient.fisher_product(flat, batch.observations, settings.damping)
    signs = direction(batch.returns.shape[0] - 1)
    limited = problem.limited()
    # Violations c_j and the gradients of c_j + (Bx)_j, per episode; a free signal has a zero row.
    violations = jnp.where(limited, -problem.slack(batch.returns), -1.0)

    def surrogates(vector: jax.Array) -> jax.Array:
        distribution = flat.policy(vector).distribution(batch.observations)
        return batch.surrogates(jnp.exp(distribution.log_prob(batch.actions) - batch.log_probs))

    rows = jax.jacrev(surrogates)(flat.vector)
    """[1 + K, P] gradient of each return"""

    def beside(vector: jax.Array) -> jax.Array:
        """What the objective holds besides surrogates: nearness to the anchor, entropy."""
        seen = natural_gradient.look(flat.policy(vector), batch)
        return bonus * seen.entropy - problem.anchor_weight * seen.anchor_kl

    extra = batch.anchor is not None or settings.entropy > 0
    pull = jax.grad(beside)(flat.vector)[None] if extra else jnp.zeros((0, rows.shape[1]))
    """[0 or 1, P] gradient of that"""
    gradients = jnp.concatenate([rows, pull])
    solved = jax.vmap(lambda v: natural_gradient.conjugate_gradient(product, v, settings.cg_iterations))(
        gradients
    )
    # Per-step units, in which the reward is standardised: the objective's size does not depend on
    # the units of the reward. Goal and limits are linear in the gradients, so their H⁻¹ is too.
    objective = problem.objective()
    goal_weights = jnp.concatenate([objective / batch.unit, jnp.ones(len(pull))])
    goal, goal_step = goal_weights @ gradients, goal_weights @ solved
    limit_signs = jnp.where(limited, -signs, 0.0)[:, None]
    limits, limit_steps = limit_signs * rows, limit_signs * solved[: len(rows)]
    overlap = limits @ limit_steps.T
    solution = dual.solve(
        q=jnp.maximum(goal @ goal_step, 0.0),
        r=limits @ goal_step,
        s=0.5 * (overlap + overlap.T),
        c=violations,
        radius=settings.kl,
        curvature=problem.anchor_weight,
    )
    towards = jnp.where(solution.feasible, goal_step, 0.0) - solution.multipliers @ limit_steps
    step = towards / solution.scale
    within = jnp.all(violations <= 0)
    beside_now = beside(flat.vector)

    def accept(candidate: natural_gradient.Candidate) -> jax.Array:
        """No less of the objective (unless a limit is broken and must be mended first), no limit
        broken or broken further, and inside the trust region."""
        others = bonus * candidate.entropy - problem.anchor_weight * candidate.anchor_kl
        gain = (objective / batch.unit) @ candidate.surrogates + others - beside_now
        change = -signs * candidate.surrogates
        kept = jnp.all(~limited | (change <= jnp.maximum(-violations, 0.0)))
        finite = jnp.all(jnp.isfinite(candidate.surrogates)) & jnp.isfinite(candidate.kl)
        return finite & ((gain >= 0) | ~within) & kept & (candidate.kl <= settings.kl)

    new, seen, fraction = natural_gradient.line_search(
        flat, step, batch, accept, settings.backtrack, settings.backtracks
    )
    metrics = {
        "kl": seen.kl,
        "surrogates": seen.surrogates,
        "multipliers": jnp.where(limited, solution.multipliers * batch.unit, 0.0),
        "step_fraction": fraction,
        "feasible": solution.feasible,
        "gradient_finite": jnp.all(jnp.isfinite(rows)),
    }
    return new, metrics


def update(
    config: Config,
    state: TrustRegionState,
    policy: Policy,
    critics: Critics,
    problem: Problem,
    batch: Batch,
    key: jax.Array,
    progress: jax.Array,
) -> Update:
    policy, metrics = policy_step(config, policy, problem, batch, progress)
    return fit(config, state, policy, critics, batch, key, metrics)


def fit(
    config: Config,
    state: TrustRegionState,
    policy: Policy,
    critics: Critics,
    batch: Batch,
    key: jax.Array,
    metrics: Metrics,
) -> Update:
    """Fit the critics after a policy step, and finish its metrics."""
    critics, moments, loss, finite = ppo.fit_critics(config, critics, state.critic_moments, batch, key)
    metrics["critic_loss"] = loss
    metrics["gradient_finite"] = metrics["gradient_finite"] & finite
    metrics["passes"] = jnp.full((), config.critic.passes, jnp.int32)
    return Update(policy, critics, TrustRegionState(moments), metrics)


SOLVER = Solver(init, update)
