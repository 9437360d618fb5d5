"""Readings of a Go1 written down by hand, for tests of functions on given numbers."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.reading import Reading

EXACT = Go1Config(reset="exact", random_clocks=False, random_phase=False)
"""No chance at the start. Tests share it, with four robots, so that it is compiled once."""
TROT = (0.25, 0.75, 0.75, 0.25)
"""FR and RL in the middle of stance, FL and RR in the middle of swing."""


def standing(**changes: Any) -> Reading:
    """One robot [1, ...]: level, at rest, in the default pose, a quarter of its weight on each foot."""
    reading = Reading(
        joint_position=jnp.asarray([Go1Config().default_pose]),
        joint_velocity=jnp.zeros((1, 12)),
        height=jnp.asarray([0.3]),
        linear_velocity=jnp.zeros((1, 3)),
        angular_velocity=jnp.zeros((1, 3)),
        up=jnp.asarray([[0.0, 0.0, 1.0]]),
        foot_height=jnp.full((1, 4), 0.02),
        foot_velocity=jnp.zeros((1, 4, 3)),
        foot_force=jnp.full((1, 4), 31.25),
        link_touch=jnp.zeros((1, 13), bool),
        torque=jnp.zeros((1, 12)),
    )
    return reading._replace(**{name: jnp.asarray([value]) for name, value in changes.items()})


def up_at(roll: float = 0.0, pitch: float = 0.0) -> np.ndarray:
    """The up direction in a body rolled about x or pitched about y (nose down positive), degrees."""
    roll, pitch = np.radians(roll), np.radians(pitch)
    return np.array([-np.sin(pitch), np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch)])
