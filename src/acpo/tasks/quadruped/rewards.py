"""The six reward terms, one function each, and their weighted sum R (spec 5).

B worlds. `contact` [B, 4] is the gait's desired contact: 1 asks for stance, 0 for swing. Terms are
unweighted; the widths (`sigma`) differ because the paper's one letter stands for four units.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.gait import desired_height, schedule
from acpo.tasks.quadruped.reading import Reading


class RewardTerms(NamedTuple):
    """[B] each: the paper's terms, weights not yet applied."""

    linear_tracking: jax.Array
    angular_tracking: jax.Array
    collision: jax.Array
    clearance: jax.Array
    foot_velocity: jax.Array
    foot_force: jax.Array


def linear_tracking(velocity: jax.Array, command: jax.Array, sigma: float) -> jax.Array:
    """[B] closeness of the planar velocity [B, 2] to its command [B, 2]: 1 when equal."""
    return jnp.exp(-jnp.sum((velocity - command) ** 2, axis=-1) / sigma)


def angular_tracking(rate: jax.Array, command: jax.Array, sigma: float) -> jax.Array:
    """[B] closeness of the turning rate [B] to its command [B]: 1 when equal."""
    return jnp.exp(-((rate - command) ** 2) / sigma)


def collision(link_touch: jax.Array) -> jax.Array:
    """[B] how many of the links other than feet touch the floor, from [B, 13] bool."""
    return jnp.sum(link_touch, axis=-1, dtype=jnp.float32)


def clearance(height: jax.Array, desired: jax.Array, contact: jax.Array, sigma: float) -> jax.Array:
    """[B] how far swing feet are from the desired height; heights [B, 4]."""
    return jnp.sum((1 - contact) * -jnp.expm1(-((height - desired) ** 2) / sigma), axis=-1)


def foot_velocity(velocity: jax.Array, contact: jax.Array, sigma: float) -> jax.Array:
    """[B] how much stance feet move; velocities [B, 4, 3]."""
    return jnp.sum(contact * -jnp.expm1(-jnp.sum(velocity**2, axis=-1) / sigma), axis=-1)


def foot_force(force: jax.Array, contact: jax.Array, sigma: float) -> jax.Array:
    """[B] how much swing feet carry; norms of forces [B, 4]."""
    return jnp.sum((1 - contact) * -jnp.expm1(-(force**2) / sigma), axis=-1)


def terms(config: Go1Config, reading: Reading, phases: jax.Array, command: jax.Array) -> RewardTerms:
    """All six for the state a step led to, the phases [B, 4] it ended at and its command [B, 3]."""
    contact = schedule(config, phases, command)
    return RewardTerms(
        linear_tracking(reading.linear_velocity[:, :2], command[:, :2], config.tracking_sigma),
        angular_tracking(reading.angular_velocity[:, 2], command[:, 2], config.tracking_sigma),
        collision(reading.link_touch),
        clearance(reading.foot_height, desired_height(config, phases), contact, config.clearance_sigma),
        foot_velocity(reading.foot_velocity, contact, config.foot_velocity_sigma),
        foot_force(reading.foot_force, contact, config.foot_force_sigma),
    )


def total(config: Go1Config, values: RewardTerms) -> jax.Array:
    """[B] R = sum of weights times terms: the paper's reward of one step."""
    return (
        config.linear_tracking_weight * values.linear_tracking
        + config.angular_tracking_weight * values.angular_tracking
        + config.collision_weight * values.collision
        + config.clearance_weight * values.clearance
        + config.foot_velocity_weight * values.foot_velocity
        + config.foot_force_weight * values.foot_force
    )


def learner_reward(config: Go1Config, reward: jax.Array) -> jax.Array:
    """[B] what the learner maximises: 0.02 (R + 2).

    Untrained policies earn R < 0 at every step and would learn to fall early; the constant changes
    nothing between policies that stay up, and never enters a reported number.
    """
    return config.reward_scale * (reward + config.reward_offset)
