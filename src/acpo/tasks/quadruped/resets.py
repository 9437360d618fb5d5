"""Where episodes start (spec 7): poses and velocities of the robot."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.reading import Robot

DRAWS = 18


def starts(config: Go1Config, robot: Robot, uniform: jax.Array) -> tuple[jax.Array, jax.Array]:
    """qpos [B, 19] and qvel [B, 18] of fresh episodes from uniform numbers [B, 18] in [0, 1).

    The default starts from the settled stand: a drop would charge the vertical-velocity cost
    before the policy has acted once.
    """
    match config.reset:
        case "exact":
            count = uniform.shape[0]
            return jnp.tile(jnp.asarray(robot.settled), (count, 1)), jnp.zeros((count, 18))
        case "settled":
            return _noisy_stand(config, robot, uniform)
        case "legged_gym":
            return _dropped(config, robot, uniform)


def _noisy_stand(config: Go1Config, robot: Robot, uniform: jax.Array) -> tuple[jax.Array, jax.Array]:
    count = uniform.shape[0]
    signed = 2 * uniform - 1
    settled = jnp.asarray(robot.settled)
    place = jnp.tile(settled[:3].at[2].add(config.reset_lift), (count, 1))
    orientation = turn(jnp.pi * signed[:, 0], settled[3:7])
    joints = settled[7:] + config.reset_joint_noise * signed[:, 1:13]
    qvel = jnp.zeros((count, 18)).at[:, :2].set(config.reset_velocity * signed[:, 13:15])
    return jnp.concatenate([place, orientation, joints], axis=-1), qvel


def _dropped(config: Go1Config, robot: Robot, uniform: jax.Array) -> tuple[jax.Array, jax.Array]:
    count = uniform.shape[0]
    least, most = config.reset_pose_factors
    joints = (least + (most - least) * uniform[:, :12]) * jnp.asarray(config.default_pose)
    # The factors reach past the calves' stops, where the simulator would start with a blow.
    joints = jnp.clip(joints, jnp.asarray(robot.joint_low), jnp.asarray(robot.joint_high))
    root = jnp.tile(jnp.asarray([0.0, 0.0, config.reset_drop_height, 1.0, 0.0, 0.0, 0.0]), (count, 1))
    velocity = config.reset_root_velocity * (2 * uniform[:, 12:18] - 1)
    return jnp.concatenate([root, joints], axis=-1), jnp.zeros((count, 18)).at[:, :6].set(velocity)


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
