"""The 72 numbers that actor and critics see (spec 3)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.gait import phase_features
from acpo.tasks.quadruped.reading import Reading

SIZE = 72
PARTS = {
    "joint_position": slice(0, 12),
    "joint_velocity": slice(12, 24),
    "linear_velocity": slice(24, 27),
    "angular_velocity": slice(27, 30),
    "gravity": slice(30, 33),
    "actions": slice(33, 45),
    "last_actions": slice(45, 57),
    "contacts": slice(57, 61),
    "phases": slice(61, 69),
    "command": slice(69, 72),
}
"""Where each part lies, in the order of the paper's table."""


def touching(config: Go1Config, reading: Reading) -> jax.Array:
    """[B, 4] bool: feet that carry more than a newton."""
    return reading.foot_force > config.contact_threshold


def observe(
    config: Go1Config,
    reading: Reading,
    *,
    action: jax.Array,
    last_action: jax.Array,
    phases: jax.Array,
    command: jax.Array,
    key: jax.Array,
) -> jax.Array:
    """[B, 72] after a step; actions [B, 12] unscaled, phases [B, 4], command [B, 3].

    `key` is used only with `observation_noise`, which is added in physical units.
    """
    senses = [
        reading.joint_position - jnp.asarray(config.default_pose),
        reading.joint_velocity,
        reading.linear_velocity,
        reading.angular_velocity,
        -config.gravity_norm * reading.up,
    ]
    if config.observation_noise:
        senses = _disturb(config, senses, key)
    scales = (
        1.0,
        config.joint_velocity_scale,
        config.linear_velocity_scale,
        config.angular_velocity_scale,
        config.gravity_scale,
    )
    parts = [scale * sense for scale, sense in zip(scales, senses, strict=True)]
    parts += [
        action,
        last_action,
        touching(config, reading).astype(jnp.float32),
        phase_features(phases),
        config.command_scale * command,
    ]
    observation = jnp.concatenate(parts, axis=-1)
    return jnp.clip(observation, -config.observation_clip, config.observation_clip)


def _disturb(config: Go1Config, senses: list[jax.Array], key: jax.Array) -> list[jax.Array]:
    amounts = (
        config.noise_joint_position,
        config.noise_joint_velocity,
        config.noise_linear_velocity,
        config.noise_angular_velocity,
        config.noise_gravity * config.gravity_norm,
    )
    noise = jax.random.uniform(key, (senses[0].shape[0], 33), minval=-1.0)
    noises = jnp.split(noise, [12, 24, 27, 30], axis=-1)
    return [sense + amount * unit for sense, amount, unit in zip(senses, amounts, noises, strict=True)]
