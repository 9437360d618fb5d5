"""The state of B simulated worlds that task logic reads, whichever backend filled it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import mujoco
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


@dataclass(frozen=True)
class SensorLayout:
    """Where each named sensor lies in `sensordata`."""

    places: tuple[tuple[str, int, int], ...]
    """Name, first index and length of each sensor."""

    @classmethod
    def of(cls, model: mujoco.MjModel) -> SensorLayout:
        return cls(
            tuple(
                (model.sensor(i).name, int(model.sensor_adr[i]), int(model.sensor_dim[i]))
                for i in range(model.nsensor)
            )
        )

    def __getitem__(self, name: str) -> slice:
        for known, start, length in self.places:
            if known == name:
                return slice(start, start + length)
        raise KeyError(name)
