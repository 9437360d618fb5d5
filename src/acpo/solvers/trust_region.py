"""CPO: a linear model of objective and limits inside a KL trust region (Achiam et al., 2017).

Any number of limits, the reward's included. Without limits the step is TRPO's.
"""

from __future__ import annotations

import math
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

SMALL = 1e-20


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

    def entropy(vector: jax.Array) -> jax.Array:
        return bonus * natural_gradient.look(flat.policy(vector), batch).entropy

    def nearness(vector: jax.Array) -> jax.Array:
        return -problem.anchor_weight * natural_gradient.look(flat.policy(vector), batch).anchor_kl

    # What the objective holds besides surrogates.
    beside = [entropy] * (settings.entropy > 0) + [nearness] * (batch.anchor is not None)
    pull = jnp.stack([jax.grad(part)(flat.vector) for part in beside]) if beside else rows[:0]
    """[0 to 2, P] gradients of that"""
    span = natural_gradient.span(product, jnp.concatenate([rows, pull]), settings.cg_iterations)
    # Per-step units, in which the reward is standardised: the objective's size does not depend on
    # the units of the reward. Goal and limits are linear in the gradients.
    objective = problem.objective()
    goal = jnp.concatenate([objective / batch.unit, jnp.ones(len(pull))])
    limits = jnp.eye(len(rows), len(goal)) * jnp.where(limited, -signs, 0.0)[:, None]
    solution = dual.solve(
        q=jnp.maximum(goal @ span.overlaps @ goal, 0.0),
        r=limits @ span.overlaps @ goal,
        s=limits @ span.overlaps @ limits.T,
        c=violations,
        radius=settings.kl,
        curvature=problem.anchor_weight,
    )
    towards = (jnp.where(solution.feasible, goal, 0.0) - solution.multipliers @ limits) / solution.scale
    if settings.entropy:
        # A recovery has no goal, but it searches, too: it gets the size of the reward's gradient,
        # beside which the bonus stands everywhere else.
        size = jnp.sqrt(jnp.maximum(span.overlaps[0, 0], 0.0)) / batch.unit[0]
        edge = math.sqrt(2 * settings.kl)
        searching = (towards * size / edge).at[len(rows)].add(1.0)
        length = jnp.sqrt(jnp.maximum(searching @ span.overlaps @ searching, 0.0))
        towards = jnp.where(solution.feasible, towards, searching * edge / (length + SMALL))
    step = span.step(towards)
    # A hundredth of what a step can change: two limits that pull against each other leave no more.
    allowance = 0.01 * jnp.sqrt(2 * settings.kl * jnp.maximum(jnp.diagonal(span.overlaps)[: len(rows)], 0.0))
    within = jnp.all(violations <= 0)
    beside_now = sum((part(flat.vector) for part in beside), jnp.zeros(()))

    def accept(candidate: natural_gradient.Candidate) -> jax.Array:
        """No less of the objective (unless a limit is broken and must be mended first), no limit
        broken or broken further, and inside the trust region."""
        others = bonus * candidate.entropy - problem.anchor_weight * candidate.anchor_kl
        gain = (objective / batch.unit) @ candidate.surrogates + others - beside_now
        change = -signs * candidate.surrogates
        kept = jnp.all(~limited | (change <= jnp.maximum(-violations, 0.0) + allowance))
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
