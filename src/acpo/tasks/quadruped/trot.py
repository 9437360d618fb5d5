"""A crude walk without learning or feedback: what a reward of 0.9 looks like.

Feet follow the gait clock through inverse kinematics, with the torque that carries the weight fed
forward through the soft gains. It checks rewards, costs and pictures end to end before any policy
has been trained (spec 2 and 5 quote its scores), and is no match for one.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.gait import clock, desired_contact

LINK = 0.213
HIP = np.array([[0.1881, -0.04675], [0.1881, 0.04675], [-0.1881, -0.04675], [-0.1881, 0.04675]])
OFFSET = np.array([-0.08, 0.08, -0.08, 0.08])
FEET = np.array([[0.1725, -0.157], [0.1725, 0.157], [-0.2652, -0.1565], [-0.2652, 0.1565]])
WEIGHT = 12.743448 * 9.81


def leg_joints(foot: np.ndarray) -> np.ndarray:
    """[4, 3] hip, thigh, calf angles that put the feet at [4, 3] in the trunk's frame."""
    x, y = (foot[:, :2] - HIP).T
    z = foot[:, 2]
    reach = np.sqrt(np.maximum(y**2 + z**2 - OFFSET**2, 1e-6))
    hip = np.arctan2(z, y) - np.arctan2(-reach, OFFSET)
    bend = np.clip((x**2 + reach**2) / (2 * LINK**2) - 1, -1.0, 1.0)
    calf = -np.arccos(bend)
    # Both links are equal, so the line from hip to foot halves the knee's angle.
    thigh = np.arctan2(-x, reach) - calf / 2
    return np.stack([hip, (thigh + np.pi) % (2 * np.pi) - np.pi, calf], axis=1)


def foot_heights(joints: np.ndarray) -> np.ndarray:
    """[4] heights of the feet in the trunk's frame from [4, 3] joint angles."""
    hip, thigh, calf = joints.T
    return OFFSET * np.sin(hip) - LINK * np.cos(hip) * (np.cos(thigh) + np.cos(thigh + calf))


def carrying_torque(joints: np.ndarray, load: np.ndarray) -> np.ndarray:
    """[4, 3] torques under which feet push down with `load` [4] newtons: minus J^T f."""
    step = 1e-5
    slope = [
        (foot_heights(joints + step * unit) - foot_heights(joints - step * unit)) / (2 * step)
        for unit in np.eye(3)
    ]
    return -np.stack(slope, axis=1) * load[:, None]


def reference(config: Go1Config, command: np.ndarray, time: float, lift: float, height: float) -> np.ndarray:
    """[4, 3] joint angles of the walk at `time`, in control steps."""
    phases = np.asarray(clock(config, jnp.zeros(1), jnp.asarray([time])))[0]
    stance_time = config.duty / config.gait_frequency
    stance = phases < config.duty
    progress = np.where(stance, phases / config.duty, (phases - config.duty) / (1 - config.duty))
    smooth = progress - np.sin(2 * np.pi * progress) / (2 * np.pi)
    ahead = np.where(stance, 0.5 - progress, smooth - 0.5)
    turn = command[2] * np.stack([-FEET[:, 1], FEET[:, 0]], axis=1)
    plane = FEET + ahead[:, None] * stance_time * (command[:2] + turn)
    rise = np.where(stance, 0.0, lift * np.sin(np.pi * progress) ** 2)
    return leg_joints(np.concatenate([plane, (config.foot_radius - height + rise)[:, None]], axis=1))


def trot(
    config: Go1Config, command: np.ndarray, step: int, lift: float = 0.06, height: float = 0.285
) -> np.ndarray:
    """[12] action of control step `step`, for a clock that started at 0 and a command [3].

    The targets lead the reference by what load and damping take from them.
    """
    # The target acts during the step that ends at the next phase.
    joints = reference(config, command, step + 1, lift, height)
    ahead, behind = (reference(config, command, step + 1 + d, lift, height) for d in (0.25, -0.25))
    velocity = (ahead - behind) / (0.5 * config.control_step)
    phases = clock(config, jnp.zeros(1), jnp.asarray([step + 1]))
    contact = np.asarray(desired_contact(config, phases))[0]
    torque = carrying_torque(joints, WEIGHT * contact / contact.sum()) + config.kd * velocity
    targets = joints + torque / config.kp
    return ((targets.reshape(12) - np.asarray(config.default_pose)) / config.action_scale).astype(np.float32)
