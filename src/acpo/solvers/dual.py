"""The small dual problem behind a trust-region step with several limits.

    maximise   gᵀx − ½w·xᵀHx     subject to  c + Bx ≤ 0,   ½xᵀHx ≤ δ

Its solution is x = H⁻¹(g − Bᵀν)/Λ with Λ = λ + w, where λ ≥ 0 belongs to the trust region and
ν ≥ 0 to the limits. Only the numbers q = gᵀH⁻¹g, r = BH⁻¹g and S = BH⁻¹Bᵀ enter. For a given Λ
the limits' multipliers solve a quadratic programme of m variables, exactly, by the active-set
method of Lawson and Hanson; ½xᵀHx falls as Λ grows, so Λ is found by bisection.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

RIDGE = 1e-6
"""Added to the unit diagonal of S, so that two limits with one gradient still have a solution."""
BISECTIONS = 60


class Solution(NamedTuple):
    scale: jax.Array
    """[] Λ"""
    multipliers: jax.Array
    """[m] ν"""
    feasible: jax.Array
    """[] bool: some step inside the trust region keeps every linearised limit"""


def nonnegative_quadratic(matrix: jax.Array, linear: jax.Array) -> jax.Array:
    """ν ≥ 0 [m] that minimises ½νᵀMν − bᵀν for positive definite M [m, m] and b [m]."""
    size = linear.shape[0]
    identity = jnp.eye(size)
    tolerance = 1e-6 * (1 + jnp.abs(linear).max())

    def restricted(free: jax.Array) -> jax.Array:
        """The unconstrained minimiser over the free variables, the others at zero."""
        block = jnp.where(free[:, None] & free[None, :], matrix, 0.0) + jnp.where(free, 0.0, 1.0) * identity
        return jnp.where(free, jnp.linalg.solve(block, jnp.where(free, linear, 0.0)), 0.0)

    def has_negative(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        free, _, candidate = carry
        return jnp.any(free & (candidate <= 0))

    def shorten(
        carry: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Go towards the candidate until the first free variable reaches zero, and fix it there."""
        free, values, candidate = carry
        blocking = free & (candidate <= 0)
        gap = jnp.where(blocking, values - candidate, 1.0)
        fractions = jnp.where(blocking, values / jnp.where(gap > 0, gap, 1.0), jnp.inf)
        fraction = fractions.min()
        values = values + fraction * (candidate - values)
        free = free & ~(blocking & (fractions <= fraction)) & (values > 0)
        values = jnp.where(free, values, 0.0)
        return free, values, restricted(free)

    def wants_more(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        free, values, count = carry
        pull = jnp.where(free, -jnp.inf, linear - matrix @ values)
        return (pull.max() > tolerance) & (count < 3 * size)

    def enlarge(
        carry: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        free, values, count = carry
        pull = jnp.where(free, -jnp.inf, linear - matrix @ values)
        free = free.at[jnp.argmax(pull)].set(True)
        free, _, values = jax.lax.while_loop(has_negative, shorten, (free, values, restricted(free)))
        return free, values, count + 1

    start = (jnp.zeros(size, bool), jnp.zeros(size), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(wants_more, enlarge, start)[1]


def solve(
    q: jax.Array,
    r: jax.Array,
    s: jax.Array,
    c: jax.Array,
    radius: float,
    curvature: jax.Array,
) -> Solution:
    """Multipliers of the problem above; q [], r [m], s [m, m], c [m], radius δ, curvature w [].

    A limit that does not apply has a zero row in B (so zeros in r and s) and c < 0.
    """
    size = r.shape[0]
    if size == 0:
        edge = jnp.sqrt(q / (2 * radius))
        return Solution(jnp.maximum(edge, curvature) + 1e-20, jnp.zeros(0), jnp.ones((), bool))
    norms = jnp.sqrt(jnp.maximum(jnp.diagonal(s), 0.0))
    rows = jnp.where(norms > 0, norms, 1.0)
    # Unit rows: limits of very different units become comparable numbers.
    matrix = s / rows[:, None] / rows[None, :]
    matrix = matrix + jnp.diag(jnp.where(norms > 0, RIDGE, 1.0))
    r, c = r / rows, c / rows

    def multipliers(scale: jax.Array) -> jax.Array:
        return nonnegative_quadratic(matrix, r + scale * c)

    def squared_size(scale: jax.Array) -> jax.Array:
        """½xᵀHx"""
        nu = multipliers(scale)
        return (q - 2 * nu @ r + nu @ matrix @ nu) / (2 * scale**2)

    nearest = nonnegative_quadratic(matrix, c)
    """Multipliers of the shortest step that keeps the limits."""
    feasible = 0.5 * nearest @ matrix @ nearest < radius

    low = jnp.log(jnp.sqrt(q / (2 * radius)) * 1e-4 + 1e-12)
    high = jnp.log((jnp.sqrt(q) + jnp.abs(r).sum() + 1e-6) * 1e6 / jnp.sqrt(2 * radius))

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        outside = squared_size(jnp.exp(middle)) > radius
        return jnp.where(outside, middle, low), jnp.where(outside, high, middle)

    low, high = jax.lax.fori_loop(0, BISECTIONS, halve, (low, high))
    scale = jnp.maximum(jnp.exp(high), curvature)
    # Infeasible: the direction of the shortest feasible step, cut to the trust region.
    recovery_scale = jnp.sqrt(nearest @ matrix @ nearest / (2 * radius)) + 1e-20
    return Solution(
        jnp.where(feasible, scale, recovery_scale),
        jnp.where(feasible, multipliers(scale), nearest) / rows,
        feasible,
    )
