"""Velocity commands: forward m/s, left m/s, turn rad/s (spec 4)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from acpo.tasks.quadruped.config import Go1Config


def draw_commands(config: Go1Config, key: jax.Array, count: int) -> jax.Array:
    """[count, 3] fresh commands.

    Small planar ones become zero, since a robot cannot tell them from standing; a tenth are zero
    altogether, so that standing is learned too.
    """
    draw_key, stand_key = jax.random.split(key)
    limits = jnp.asarray(config.command_limits)
    command = jax.random.uniform(draw_key, (count, 3), minval=-limits, maxval=limits)
    crawling = jnp.linalg.norm(command[:, :2], axis=-1) < config.command_dead_zone
    command = command.at[:, :2].set(jnp.where(crawling[:, None], 0.0, command[:, :2]))
    standing = jax.random.bernoulli(stand_key, config.standing_probability, (count, 1))
    return jnp.where(standing, 0.0, command)
