"""What Goal and Circle have in common: what they read of a world and what a step gives."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.physics.state import PhysicsState
from acpo.tasks.navigation.robot import Body, Robot

VASE_HALF_SIZE = 0.1
VASE_SINK = 4e-5
"""A vase starts this far (m) inside the floor."""


class World(NamedTuple):
    """What the games look at: the robot and V vases of B worlds."""

    body: Body
    vases_xy: jax.Array
    """[B, V, 2]"""
    vases_speed: jax.Array
    """[B, V] of the vases' origins"""
    vases_touched: jax.Array
    """[B, V] bool: some geom of the robot touches it; all False where the model has no such sensor"""


class Outcome(NamedTuple):
    """What a step gives, before clocks and failures are looked at."""

    reward: jax.Array
    """[B]"""
    costs: jax.Array
    """[B, K]"""
    goal_met: jax.Array
    """[B] bool"""
    stuck: jax.Array
    """[B] bool: no place was left for a new goal, which ends the episode"""


def read_world(robot: Robot, vases: int, touch: bool, state: PhysicsState) -> World:
    """The robot's coordinates come first, then 7 and 6 numbers for each vase; the contact sensors
    of the vases, where the model has them (`touch`), follow the robot's own sensors."""
    qpos, qvel = jnp.asarray(state.qpos), jnp.asarray(state.qvel)
    num = qpos.shape[0]
    boxes = qpos[:, robot.nq :].reshape(num, vases, 7)
    speeds = qvel[:, robot.nv :].reshape(num, vases, 6)
    touched = jnp.zeros((num, vases), bool)
    if touch:
        touched = jnp.asarray(state.sensordata)[:, robot.sensordata_size :] > 0
    return World(
        robot.body(qpos[:, : robot.nq], qvel[:, : robot.nv]),
        boxes[:, :, :2],
        jnp.linalg.norm(speeds[:, :, :3], axis=-1),
        touched,
    )
