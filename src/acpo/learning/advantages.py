"""Generalised advantage estimation for the reward and every cost at once.

T steps, B environments, 1 + K signals (reward first).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def estimate(
    signals: jax.Array,
    values: jax.Array,
    next_values: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    discount: jax.Array,
    trace: jax.Array,
) -> jax.Array:
    """Advantages [T, B, 1 + K].

    `next_values[t]` values the observation that step t led to before any reset, so a time-out
    bootstraps from the state it really reached; a true end has no future and counts zero. The
    trace is cut at either kind of end, because the next row belongs to another episode.

    signals, values, next_values: [T, B, 1 + K]; terminated, truncated: [T, B];
    discount, trace: [1 + K].
    """
    alive = 1.0 - terminated[..., None].astype(values.dtype)
    continues = 1.0 - (terminated | truncated)[..., None].astype(values.dtype)
    deltas = signals + discount * alive * next_values - values

    def backwards(following: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta, keep = step
        advantage = delta + discount * trace * keep * following
        return advantage, advantage

    _, advantages = jax.lax.scan(backwards, jnp.zeros_like(deltas[0]), (deltas, continues), reverse=True)
    return advantages
