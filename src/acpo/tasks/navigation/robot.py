"""The two robots: how their pose, velocity and sensors are read, and where they start.

Navigation specification, sections 1 and 3. Everything works on B worlds at once and for both
backends. A robot's coordinates come first in qpos and qvel; the vases follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

HEIGHT = 0.1
"""Starting height of either robot's body origin, in m."""


class Body(NamedTuple):
    """Pose and velocity of the robot's body origin in the world."""

    position: jax.Array
    """[B, 3]"""
    rotation: jax.Array
    """[B, 3, 3], body to world"""
    velocity: jax.Array
    """[B, 3]"""


@dataclass(frozen=True)
class Robot:
    name: str
    file: str
    """The MJCF beside this module."""
    nq: int
    nv: int
    substeps: int
    body: Callable[[jax.Array, jax.Array], Body]
    """From qpos [B, nq] and qvel [B, nv]."""
    start: Callable[[jax.Array, jax.Array], jax.Array]
    """qpos [B, nq] of a robot at rest at xy [B, 2] with a yaw [B]."""
    sensors: Callable[[jax.Array], jax.Array]
    """The sensor part of the observation [B, 12 or 24] from sensordata [B, ns]."""
    sensor_size: int
    sensordata_size: int
    """Numbers in sensordata that are the robot's own."""


def rotation_about_z(yaw: jax.Array) -> jax.Array:
    """[..., 3, 3] from angles [...]."""
    c, s, zero, one = jnp.cos(yaw), jnp.sin(yaw), jnp.zeros_like(yaw), jnp.ones_like(yaw)
    return jnp.stack([c, -s, zero, s, c, zero, zero, zero, one], axis=-1).reshape(*yaw.shape, 3, 3)


def rotation_of(quaternion: jax.Array) -> jax.Array:
    """[..., 3, 3] from quaternions [..., 4] (w first), which need not be of unit length."""
    w, x, y, z = jnp.moveaxis(quaternion / jnp.linalg.norm(quaternion, axis=-1, keepdims=True), -1, 0)
    rows = [
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ]  # fmt: skip
    return jnp.stack(rows, axis=-1).reshape(*quaternion.shape[:-1], 3, 3)


def quaternion_about_z(yaw: jax.Array) -> jax.Array:
    """[..., 4] from angles [...]; the sign is left as it falls out, as in the original."""
    zero = jnp.zeros_like(yaw)
    return jnp.stack([jnp.cos(yaw / 2), zero, zero, jnp.sin(yaw / 2)], axis=-1)


def _point_body(qpos: jax.Array, qvel: jax.Array) -> Body:
    position = jnp.stack([qpos[:, 0], qpos[:, 1], jnp.full_like(qpos[:, 0], HEIGHT)], axis=1)
    velocity = jnp.stack([qvel[:, 0], qvel[:, 1], jnp.zeros_like(qvel[:, 0])], axis=1)
    return Body(position, rotation_about_z(qpos[:, 2]), velocity)


def _point_start(xy: jax.Array, yaw: jax.Array) -> jax.Array:
    return jnp.concatenate([xy, yaw[:, None]], axis=1)


def _car_body(qpos: jax.Array, qvel: jax.Array) -> Body:
    return Body(qpos[:, :3], rotation_of(qpos[:, 3:7]), qvel[:, :3])


def _car_start(xy: jax.Array, yaw: jax.Array) -> jax.Array:
    num = yaw.shape[0]
    wheels_and_ball = jnp.tile(jnp.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], xy.dtype), (num, 1))
    height = jnp.full((num, 1), HEIGHT, xy.dtype)
    return jnp.concatenate([xy, height, quaternion_about_z(yaw), wheels_and_ball], axis=1)


def _car_sensors(sensordata: jax.Array) -> jax.Array:
    ball = rotation_of(sensordata[:, 15:19]).reshape(-1, 9)
    return jnp.concatenate([sensordata[:, :15], ball], axis=1)


POINT = Robot("Point", "point.xml", 3, 3, 10, _point_body, _point_start, lambda s: s[:, :12], 12, 12)
CAR = Robot("Car", "car.xml", 13, 11, 10, _car_body, _car_start, _car_sensors, 24, 19)
ROBOTS = {robot.name: robot for robot in (POINT, CAR)}
