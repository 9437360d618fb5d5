"""Action distributions. Arrays carry leading batch axes [...]; A is the number of action entries."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp


class Gaussian(eqx.Module):
    """Independent normal entries; not squashed, the task clips."""

    mean: jax.Array
    """[..., A]"""
    log_std: jax.Array
    """[..., A]"""

    def sample(self, key: jax.Array) -> jax.Array:
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + jnp.exp(self.log_std) * noise

    def mode(self) -> jax.Array:
        return self.mean

    def log_prob(self, action: jax.Array) -> jax.Array:
        standard = (action - self.mean) * jnp.exp(-self.log_std)
        return jnp.sum(-0.5 * standard**2 - self.log_std - 0.5 * math.log(2 * math.pi), axis=-1)

    def entropy(self) -> jax.Array:
        return jnp.sum(self.log_std + 0.5 * math.log(2 * math.pi * math.e), axis=-1)

    def kl(self, other: Gaussian) -> jax.Array:
        """KL(self ‖ other), summed over action entries."""
        variance_ratio = jnp.exp(2 * (self.log_std - other.log_std))
        shift = ((self.mean - other.mean) * jnp.exp(-other.log_std)) ** 2
        return 0.5 * jnp.sum(variance_ratio + shift - 1 - jnp.log(variance_ratio), axis=-1)


class Categorical(eqx.Module):
    """One of A actions, from log-probabilities up to a constant."""

    logits: jax.Array
    """[..., A]"""

    def sample(self, key: jax.Array) -> jax.Array:
        return jax.random.categorical(key, self.logits)

    def mode(self) -> jax.Array:
        return jnp.argmax(self.logits, axis=-1)

    def log_probs(self) -> jax.Array:
        return jax.nn.log_softmax(self.logits)

    def log_prob(self, action: jax.Array) -> jax.Array:
        return jnp.take_along_axis(self.log_probs(), action[..., None], axis=-1)[..., 0]

    def entropy(self) -> jax.Array:
        log_probs = self.log_probs()
        return -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1)

    def kl(self, other: Categorical) -> jax.Array:
        """KL(self ‖ other)."""
        log_probs = self.log_probs()
        return jnp.sum(jnp.exp(log_probs) * (log_probs - other.log_probs()), axis=-1)


Distribution = Gaussian | Categorical
