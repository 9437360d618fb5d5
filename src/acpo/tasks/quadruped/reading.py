"""What the task reads from a simulated Go1: named quantities instead of places in arrays.

B worlds. Everything after this module is a function of a `Reading`, so that a test can write one
down by hand and no term depends on the physics backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from acpo.physics.state import PhysicsState
from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.model import FEET, JOINTS, LINKS, build_model, settled_qpos

Places = tuple[int, ...]


@dataclass(frozen=True)
class Robot:
    """Static facts of the compiled model, as plain tuples so that they can key a compilation."""

    linear_velocity: Places
    angular_velocity: Places
    foot_position: Places
    foot_velocity: Places
    foot_force: Places
    link_touch: Places
    torque: Places
    """These seven: where the quantity lies in `sensordata`."""
    joint_low: tuple[float, ...]
    joint_high: tuple[float, ...]
    """[12] hard joint limits, rad."""
    torque_limit: tuple[float, ...]
    """[12] what the motors can give, N m."""
    settled: tuple[float, ...]
    """[19] qpos of the stand that action 0 sinks into."""


class Reading(NamedTuple):
    """The robot after a control step (spec 3, 5, 6)."""

    joint_position: jax.Array
    """[B, 12] rad"""
    joint_velocity: jax.Array
    """[B, 12] rad/s"""
    height: jax.Array
    """[B] of the trunk's origin above the floor, m"""
    linear_velocity: jax.Array
    """[B, 3] of the trunk's origin, body frame, m/s"""
    angular_velocity: jax.Array
    """[B, 3] body frame, rad/s"""
    up: jax.Array
    """[B, 3] the world's up direction in the body frame, a unit vector"""
    foot_height: jax.Array
    """[B, 4] of the feet's centres above the floor, m"""
    foot_velocity: jax.Array
    """[B, 4, 3] of the feet's centres, world frame, m/s"""
    foot_force: jax.Array
    """[B, 4] norm of the contact force, N"""
    link_touch: jax.Array
    """[B, 13] bool: which of `LINKS` touch the floor"""
    torque: jax.Array
    """[B, 12] actuator forces after clipping, N m"""


def describe(config: Go1Config) -> Robot:
    """The static facts of the robot under a configuration."""
    model = build_model(config)

    def places(*names: str) -> Places:
        found: list[int] = []
        for name in names:
            sensor = model.sensor(name)
            found += range(int(sensor.adr[0]), int(sensor.adr[0] + sensor.dim[0]))
        return tuple(found)

    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in JOINTS]
    actuators = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_ACTUATOR, name) for name in JOINTS]
    return Robot(
        linear_velocity=places("linear_velocity"),
        angular_velocity=places("angular_velocity"),
        foot_position=places(*(f"{foot}_position" for foot in FEET)),
        foot_velocity=places(*(f"{foot}_velocity" for foot in FEET)),
        foot_force=places(*(f"{foot}_force" for foot in FEET)),
        link_touch=places(*(f"{link}_touch" for link in LINKS)),
        torque=places(*(f"{joint}_torque" for joint in JOINTS)),
        joint_low=tuple(model.jnt_range[joints, 0].tolist()),
        joint_high=tuple(model.jnt_range[joints, 1].tolist()),
        torque_limit=tuple(model.actuator_forcerange[actuators, 1].tolist()),
        settled=tuple(settled_qpos(config).tolist()),
    )


def read(robot: Robot, physics: PhysicsState) -> Reading:
    """Name what lies in the physics state; all fields in float32."""
    qpos = jnp.asarray(physics.qpos, jnp.float32)
    qvel = jnp.asarray(physics.qvel, jnp.float32)
    sensors = jnp.asarray(physics.sensordata, jnp.float32)

    def take(places: Places) -> jax.Array:
        return sensors[:, np.asarray(places)]

    return Reading(
        joint_position=qpos[:, 7:],
        joint_velocity=qvel[:, 6:],
        height=qpos[:, 2],
        linear_velocity=take(robot.linear_velocity),
        angular_velocity=take(robot.angular_velocity),
        up=up_in_body(qpos[:, 3:7]),
        foot_height=take(robot.foot_position)[:, 2::3],
        foot_velocity=take(robot.foot_velocity).reshape(-1, 4, 3),
        # The sensor speaks in the contact's frame, of which only the norm is needed.
        foot_force=jnp.linalg.norm(take(robot.foot_force).reshape(-1, 4, 3), axis=-1),
        # A count: a box lying flat gives 4.
        link_touch=take(robot.link_touch) > 0,
        torque=take(robot.torque),
    )


def up_in_body(quaternion: jax.Array) -> jax.Array:
    """[B, 3] world z seen from a body with orientation [B, 4] (w x y z): its matrix's third row."""
    w, x, y, z = jnp.moveaxis(quaternion, -1, 0)
    return jnp.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1)
