"""The gait clock: when each foot should stand, and how high it should swing (spec 4).

Phases are in cycles, [B, 4] in leg order; stance is [0, duty), swing [duty, 1).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from acpo.tasks.quadruped.config import Go1Config


def clock(config: Go1Config, start: jax.Array, elapsed: jax.Array) -> jax.Array:
    """[B, 4] phases, `elapsed` [B] control steps after they were at `start` [B].

    Computed from the count rather than accumulated: 1000 additions would drift in float32.
    """
    cycles = config.gait_frequency * config.control_step
    return jnp.mod(start[:, None] + (cycles * elapsed)[:, None] + jnp.asarray(config.gait_offsets), 1.0)


def start_at(config: Go1Config, phase: jax.Array, elapsed: jax.Array) -> jax.Array:
    """[B] the `start` for which `clock` stands at `phase` [B] when `elapsed` [B] steps have passed."""
    return jnp.mod(phase - config.gait_frequency * config.control_step * elapsed, 1.0)


def desired_contact(config: Go1Config, phases: jax.Array) -> jax.Array:
    """[B, 4] in [0, 1], 1 where the foot should stand: walk-these-ways' smoothed schedule.

    Phi(t)(1 - Phi(t - 1/2)) + Phi(t - 1)(1 - Phi(t - 3/2)) after a warp that puts the end of
    stance at 1/2. The paper calls this the phase; it is the contact schedule.
    """
    duty = config.duty
    warped = jnp.where(phases < duty, 0.5 * phases / duty, 0.5 + 0.5 * (phases - duty) / (1 - duty))
    edges = jnp.asarray([0.0, 0.5, 1.0, 1.5]).reshape(4, 1, 1)
    begin, end, begin_next, end_next = norm.cdf(warped - edges, scale=config.contact_smoothing)
    return begin * (1 - end) + begin_next * (1 - end_next)


def schedule(config: Go1Config, phases: jax.Array, command: jax.Array) -> jax.Array:
    """[B, 4] `desired_contact`, except that with `stand_still` all feet stand at zero command [B, 3]."""
    contact = desired_contact(config, phases)
    if not config.stand_still:
        return contact
    return jnp.where((command == 0).all(axis=-1, keepdims=True), 1.0, contact)


def desired_height(config: Go1Config, phases: jax.Array) -> jax.Array:
    """[B, 4] height of the foot's centre, m: its radius in stance, a sine squared above it in swing.

    The sine squared has no vertical velocity at lift-off and touch-down.
    """
    swing = jnp.clip((phases - config.duty) / (1 - config.duty), 0.0, 1.0)
    return config.foot_radius + config.swing_height * jnp.sin(jnp.pi * swing) ** 2


def phase_features(phases: jax.Array) -> jax.Array:
    """[B, 8] sines of the four phases, then cosines."""
    angle = 2 * jnp.pi * phases
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)
