"""Worlds that differ in friction, trunk mass, centre of mass and gains (spec 7, preset `robust`).

Drawn once for each environment when a run starts, as legged_gym does, since rebuilding a world's
constants at every reset would cost more than the episode's first steps.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import mujoco.batch
import numpy as np

from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.model import FEET


class Worlds(NamedTuple):
    """Physical constants of B worlds."""

    friction: jax.Array
    """[B] sliding friction of the feet"""
    trunk_mass: jax.Array
    """[B] kg added to the trunk"""
    trunk_shift: jax.Array
    """[B, 3] m the trunk's centre of mass is moved"""
    kp_factor: jax.Array
    """[B]"""
    kd_factor: jax.Array
    """[B]"""


def draw_worlds(config: Go1Config, key: jax.Array, count: int) -> Worlds:
    """`count` robots around the nominal one."""
    keys = jax.random.split(key, 5)

    def within(key: jax.Array, span: tuple[float, float] | None, nominal: float) -> jax.Array:
        if span is None:
            return jnp.full(count, nominal)
        return jax.random.uniform(key, (count,), minval=span[0], maxval=span[1])

    mass, shift = config.trunk_mass_noise, jnp.asarray(config.trunk_com_noise)
    return Worlds(
        friction=within(keys[0], config.friction_range, config.foot_friction),
        trunk_mass=jax.random.uniform(keys[1], (count,), minval=-mass, maxval=mass),
        trunk_shift=jax.random.uniform(keys[2], (count, 3), minval=-shift, maxval=shift),
        kp_factor=within(keys[3], config.gain_range, 1.0),
        kd_factor=within(keys[4], config.gain_range, 1.0),
    )


class ModelFields(NamedTuple):
    """Fields of the MuJoCo model with a leading axis of B worlds."""

    geom_friction: jax.Array
    body_mass: jax.Array
    body_ipos: jax.Array
    actuator_gainprm: jax.Array
    actuator_biasprm: jax.Array


def model_fields(model: mujoco.MjModel, worlds: Worlds) -> ModelFields:
    """The model's fields as each world has them; the trunk's inertia stays nominal."""
    count = worlds.friction.shape[0]
    trunk = model.body("trunk").id
    feet = np.asarray([model.geom(foot).id for foot in FEET])

    def each(field: np.ndarray) -> jax.Array:
        return jnp.tile(jnp.asarray(field, jnp.float32), (count, *[1] * field.ndim))

    gain = each(model.actuator_gainprm).at[:, :, 0].multiply(worlds.kp_factor[:, None])
    bias = each(model.actuator_biasprm).at[:, :, 1].multiply(worlds.kp_factor[:, None])
    bias = bias.at[:, :, 2].multiply(worlds.kd_factor[:, None])
    return ModelFields(
        geom_friction=each(model.geom_friction).at[:, feet, 0].set(worlds.friction[:, None]),
        body_mass=each(model.body_mass).at[:, trunk].add(worlds.trunk_mass),
        body_ipos=each(model.body_ipos).at[:, trunk].add(worlds.trunk_shift),
        actuator_gainprm=gain,
        actuator_biasprm=bias,
    )


def apply_to_batch(batch: mujoco.batch.Batch, worlds: Worlds) -> None:
    """Give every world of a native batch its own constants, and all that follows from its masses."""
    for name, values in model_fields(batch.model, worlds)._asdict().items():
        batch.expand(name)[...] = np.asarray(values)
    batch.set_const()
