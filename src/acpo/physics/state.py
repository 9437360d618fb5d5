"""The state of B simulated worlds that task logic reads, whichever backend filled it."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

Array = jax.Array | np.ndarray


class PhysicsState(NamedTuple):
    """Fields have a leading axis of B worlds. Sensors are sliced by name with `SensorLayout`."""

    qpos: Array
    """[B, nq]"""
    qvel: Array
    """[B, nv]"""
    sensordata: Array
    """[B, ns] of a forward computation at this very state, with the last ctrl still applied."""
