"""Running standardisation of observations, with its count as part of the state."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Normaliser(NamedTuple):
    """Moments of everything seen; O observation numbers."""

    samples: jax.Array
    """[] how many were seen"""
    mean: jax.Array
    """[O]"""
    square: jax.Array
    """[O] sum of squared deviations from the mean"""


STD_FLOOR = 0.01
CLIP = 5.0


def init(size: int) -> Normaliser:
    return Normaliser(jnp.zeros(()), jnp.zeros(size), jnp.zeros(size))


def update(normaliser: Normaliser, observations: jax.Array) -> Normaliser:
    """Merge a batch [N, O] into the moments (Chan's parallel formula)."""
    batch_count = observations.shape[0]
    batch_mean = observations.mean(axis=0)
    batch_square = jnp.sum((observations - batch_mean) ** 2, axis=0)
    samples = normaliser.samples + batch_count
    shift = batch_mean - normaliser.mean
    return Normaliser(
        samples,
        normaliser.mean + shift * batch_count / samples,
        normaliser.square + batch_square + shift**2 * normaliser.samples * batch_count / samples,
    )


def std(normaliser: Normaliser) -> jax.Array:
    """[O], floored; ones before anything was seen."""
    deviation = jnp.sqrt(normaliser.square / jnp.maximum(normaliser.samples, 1))
    return jnp.where(normaliser.samples > 0, jnp.maximum(deviation, STD_FLOOR), 1.0)


def apply(normaliser: Normaliser, observation: jax.Array) -> jax.Array:
    """Standardise [..., O] and clip to ±5."""
    return jnp.clip((observation - normaliser.mean) / std(normaliser), -CLIP, CLIP)
