"""Velocity commands: forward m/s, left m/s, turn rad/s (spec 4)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from acpo.tasks.quadruped.config import Go1Config

DRAWS = 4


def commands(config: Go1Config, uniform: jax.Array) -> jax.Array:
    """[B, 3] fresh commands from uniform numbers [B, 4] in [0, 1).

    Small planar ones become zero, since a robot cannot tell them from standing; a tenth are zero
    altogether, so that standing is learned too.
    """
    command = (2 * uniform[:, :3] - 1) * jnp.asarray(config.command_limits)
    crawling = jnp.linalg.norm(command[:, :2], axis=-1) < config.command_dead_zone
    command = command.at[:, :2].set(jnp.where(crawling[:, None], 0.0, command[:, :2]))
    standing = uniform[:, 3:] < config.standing_probability
    return jnp.where(standing, 0.0, command)
