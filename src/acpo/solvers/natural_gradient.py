"""The second-order engine: Fisher products, conjugate gradient, line search.

P is the number of policy parameters, taken as one flat vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from acpo.learning.batch import Batch
from acpo.learning.distributions import Distribution, Gaussian
from acpo.learning.networks import Policy

RIDGE = 1e-6
"""Added to a unit diagonal, so that two parallel gradients still have a solution."""

Product = Callable[[jax.Array], jax.Array]


class Flat(NamedTuple):
    """A policy as a vector and the way back."""

    vector: jax.Array
    """[P]"""
    policy: Callable[[jax.Array], Policy]


def flatten(policy: Policy) -> Flat:
    vector, unravel = ravel_pytree(policy)
    return Flat(vector, unravel)


def _metric(distribution: Distribution, tangent: Distribution) -> Distribution:
    """The Hessian of KL(old ‖ ·) at old in the distribution's own parameters, times a tangent."""
    if isinstance(distribution, Gaussian):
        assert isinstance(tangent, Gaussian)
        return Gaussian(tangent.mean * jnp.exp(-2 * distribution.log_std), 2 * tangent.log_std)
    assert not isinstance(tangent, Gaussian)
    probabilities = jax.nn.softmax(distribution.logits)
    centred = tangent.logits - jnp.sum(probabilities * tangent.logits, axis=-1, keepdims=True)
    return type(distribution)(probabilities * centred)


def fisher_product(flat: Flat, observations: jax.Array, damping: float) -> Product:
    """v ↦ (H + damping·I)v, where H is the Hessian of the batch's mean KL at the present policy.

    H = Jᵀ M J, with J the Jacobian of the distribution's parameters and M their metric: exact for
    KL at zero distance, and two linear sweeps instead of differentiating a gradient.
    """

    def distribution(vector: jax.Array) -> Distribution:
        return flat.policy(vector).distribution(observations)

    at, jacobian = jax.linearize(distribution, flat.vector)
    transposed = jax.linear_transpose(jacobian, flat.vector)
    count = observations.shape[0]

    def product(vector: jax.Array) -> jax.Array:
        (curved,) = transposed(_metric(at, jacobian(vector)))
        return curved / count + damping * vector

    return product


def conjugate_gradient(product: Product, target: jax.Array, iterations: int) -> jax.Array:
    """x with product(x) ≈ target, [P]; a zero target gives zero."""

    class Carry(NamedTuple):
        x: jax.Array
        residual: jax.Array
        search: jax.Array
        square: jax.Array

    tolerance = 1e-12 * (target @ target)

    def step(_: int, carry: Carry) -> Carry:
        curved = product(carry.search)
        active = carry.square > tolerance
        length = carry.search @ curved
        alpha = jnp.where(active & (length > 0), carry.square / jnp.where(length > 0, length, 1.0), 0.0)
        residual = carry.residual - alpha * curved
        square = residual @ residual
        beta = jnp.where(active, square / jnp.where(active, carry.square, 1.0), 0.0)
        moved = Carry(carry.x + alpha * carry.search, residual, residual + beta * carry.search, square)
        return jax.tree.map(lambda new, old: jnp.where(active, new, old), moved, carry)

    start = Carry(jnp.zeros_like(target), target, target, target @ target)
    return jax.lax.fori_loop(0, iterations, step, start).x


class Span(NamedTuple):
    """Steps made of natural gradients: for weights u [M] of M gradients V, K Vᵀu with K ≈ H⁻¹.

    K is the inverse of H inside the span of what conjugate gradient found, which need not have come to
    its end: overlaps V K Vᵀ and steps belong exactly together, so that what is computed of a step from
    the overlaps is true of it, however nearly two gradients cancel each other.
    """

    overlaps: jax.Array
    """[M, M]"""
    basis: jax.Array
    """[M, P]"""
    mixing: jax.Array
    """[M, M] from weights of the gradients to weights of the basis"""

    def step(self, weights: jax.Array) -> jax.Array:
        """[P]"""
        return (self.mixing @ weights) @ self.basis


def span(product: Product, gradients: jax.Array, iterations: int) -> Span:
    """The natural gradients of `gradients` [M, P]."""
    basis = jax.vmap(lambda v: conjugate_gradient(product, v, iterations))(gradients)
    curved = jax.vmap(product)(basis)
    square = jnp.sum(basis * curved, axis=-1)
    size = jnp.sqrt(jnp.where(square > 0, square, 1.0))[:, None]
    basis, curved = basis / size, curved / size
    metric = basis @ curved.T
    metric = 0.5 * (metric + metric.T) + jnp.diag(jnp.where(square > 0, RIDGE, 1.0))
    across = basis @ gradients.T
    mixing = jnp.linalg.solve(metric, across)
    overlaps = across.T @ mixing
    return Span(0.5 * (overlaps + overlaps.T), basis, mixing)


class Candidate(NamedTuple):
    """A policy some way along a step, as the line search sees it."""

    surrogates: jax.Array
    """[1 + K] predicted change of each return, per episode"""
    kl: jax.Array
    """[] KL(old ‖ candidate)"""
    anchor_kl: jax.Array
    """[] KL(candidate ‖ anchor), zero where there is no anchor"""
    entropy: jax.Array
    """[] mean over the batch"""


def look(policy: Policy, batch: Batch) -> Candidate:
    distribution = policy.distribution(batch.observations)
    ratio = jnp.exp(distribution.log_prob(batch.actions) - batch.log_probs)
    anchor_kl = jnp.zeros(()) if batch.anchor is None else jnp.mean(distribution.kl(batch.anchor))  # type: ignore[arg-type]
    kl = jnp.mean(batch.old.kl(distribution))  # type: ignore[arg-type]
    return Candidate(batch.surrogates(ratio), kl, anchor_kl, jnp.mean(distribution.entropy()))


def line_search(
    flat: Flat,
    step: jax.Array,
    batch: Batch,
    accept: Callable[[Candidate], jax.Array],
    backtrack: float,
    backtracks: int,
) -> tuple[Policy, Candidate, jax.Array]:
    """The first of step, step·backtrack, step·backtrack², … that is accepted.

    Returns the policy, what was seen of it, and the fraction taken: 0 when none was accepted and
    the policy stays as it is.
    """

    class Carry(NamedTuple):
        fraction: jax.Array
        candidate: Candidate
        accepted: jax.Array
        tried: jax.Array

    def attempt(fraction: jax.Array, tried: jax.Array) -> Carry:
        candidate = look(flat.policy(flat.vector + fraction * step), batch)
        return Carry(fraction, candidate, accept(candidate), tried)

    last = jax.lax.while_loop(
        lambda carry: ~carry.accepted & (carry.tried < backtracks),
        lambda carry: attempt(carry.fraction * backtrack, carry.tried + 1),
        attempt(jnp.ones(()), jnp.ones((), jnp.int32)),
    )
    fraction = jnp.where(last.accepted, last.fraction, 0.0)
    # A rejected step may be infinite, and 0·∞ is not a number.
    vector = jnp.where(last.accepted, flat.vector + fraction * step, flat.vector)
    seen = jax.tree.map(lambda new: jnp.where(last.accepted, new, 0.0), last.candidate)
    return flat.policy(vector), seen, fraction
