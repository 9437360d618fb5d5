"""What a solver learns from: one iteration's samples, measured returns and advantages."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.learning.distributions import Distribution


class Batch(NamedTuple):
    """N samples of the current policy; signal 0 is the reward, 1 … K are costs."""

    observations: jax.Array
    """[N, O] as the networks see them"""
    actions: jax.Array
    """[N, A], or [N] of integers"""
    log_probs: jax.Array
    """[N] under the policy that acted"""
    old: Distribution
    """[N, A] of the policy that acted"""
    anchor: Distribution | None
    """[N, A] of the projection's anchor policy; None where no projection can happen"""
    advantages: jax.Array
    """[N, 1 + K] reward: standardised; costs: centred, not scaled"""
    targets: jax.Array
    """[N, 1 + K] what the critics should say"""
    returns: jax.Array
    """[1 + K] Ĵ: measured, undiscounted returns per episode"""
    unit: jax.Array
    """[1 + K] turns a mean of ratio × advantage into a change of return per episode"""

    def surrogates(self, ratio: jax.Array) -> jax.Array:
        """[1 + K] predicted change of each return under importance weights [N], per episode."""
        return ratio @ self.advantages / ratio.shape[0] * self.unit


def normalise_advantages(advantages: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Centre every column of [N, 1 + K], scale only the reward's to unit deviation.

    Also returns what each column was divided by, [1 + K].
    """
    centred = advantages - advantages.mean(axis=0)
    divisors = jnp.ones(advantages.shape[1]).at[0].set(centred[:, 0].std() + 1e-8)
    return centred / divisors, divisors
