"""Where episodes start (spec 7): poses and velocities of the robot."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.reading import Robot


def draw_starts(config: Go1Config, robot: Robot, key: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """qpos [count, 19] and qvel [count, 18] of fresh episodes.

    The default starts from the settled stand: a drop would charge the vertical-velocity cost
    before the policy has acted once.
    """
    match config.reset:
        case "exact":
            settled = jnp.asarray(robot.settled)
            return jnp.tile(settled, (count, 1)), jnp.zeros((count, 18))
        case "settled":
            return _noisy_stand(config, robot, key, count)
        case "legged_gym":
            return _dropped(config, robot, key, count)


def _noisy_stand(config: Go1Config, robot: Robot, key: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    yaw_key, joint_key, velocity_key = jax.random.split(key, 3)
    settled = jnp.asarray(robot.settled)
    yaw = jax.random.uniform(yaw_key, (count,), minval=-jnp.pi, maxval=jnp.pi)
    noise, speed = config.reset_joint_noise, config.reset_velocity
    joints = settled[7:] + jax.random.uniform(joint_key, (count, 12), minval=-noise, maxval=noise)
    place = jnp.tile(settled[:3].at[2].add(config.reset_lift), (count, 1))
    planar = jax.random.uniform(velocity_key, (count, 2), minval=-speed, maxval=speed)
    qpos = jnp.concatenate([place, turn(yaw, settled[3:7]), joints], axis=-1)
    return qpos, jnp.zeros((count, 18)).at[:, :2].set(planar)


def _dropped(config: Go1Config, robot: Robot, key: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    joint_key, velocity_key = jax.random.split(key)
    least, most = config.reset_pose_factors
    factor = jax.random.uniform(joint_key, (count, 12), minval=least, maxval=most)
    # The factors reach past the calves' stops, where the simulator would start with a blow.
    joints = jnp.clip(
        factor * jnp.asarray(config.default_pose), jnp.asarray(robot.joint_low), jnp.asarray(robot.joint_high)
    )
    root = jnp.tile(jnp.asarray([0.0, 0.0, config.reset_drop_height, 1.0, 0.0, 0.0, 0.0]), (count, 1))
    speed = config.reset_root_velocity
    velocity = jax.random.uniform(velocity_key, (count, 6), minval=-speed, maxval=speed)
    qvel = jnp.zeros((count, 18)).at[:, :6].set(velocity)
    return jnp.concatenate([root, joints], axis=-1), qvel


def turn(yaw: jax.Array, quaternion: jax.Array) -> jax.Array:
    """[B, 4] the orientation [4] (w x y z) turned about the world's z by `yaw` [B]."""
    cosine, sine = jnp.cos(yaw / 2), jnp.sin(yaw / 2)
    w, x, y, z = quaternion
    return jnp.stack(
        [
            cosine * w - sine * z,
            cosine * x - sine * y,
            cosine * y + sine * x,
            cosine * z + sine * w,
        ],
        axis=-1,
    )
