"""The MuJoCo model of the Go1: `go1.xml` with a configuration applied, and where things lie in it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np

from acpo.tasks.quadruped.config import Go1Config

LEGS = ("FR", "FL", "RR", "RL")
JOINTS = tuple(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh", "calf"))
FEET = tuple(f"{leg}_foot" for leg in LEGS)
LINKS = ("trunk", *JOINTS)
"""The 13 links that should not touch the floor, each with a geom and a touch sensor of its name."""
XML = Path(__file__).with_name("go1.xml")
SETTLE_STEPS = 4000
SETTLE_HEIGHT = 0.34


@lru_cache(maxsize=8)
def build_model(config: Go1Config) -> mujoco.MjModel:
    """The compiled robot on its plane. Shared between callers: do not write to it."""
    spec = mujoco.MjSpec.from_file(str(XML))
    option = spec.option
    option.timestep = config.physics_step
    option.iterations = config.solver_iterations
    option.ls_iterations = config.line_search_iterations
    option.cone = (
        mujoco.mjtCone.mjCONE_ELLIPTIC if config.cone == "elliptic" else mujoco.mjtCone.mjCONE_PYRAMIDAL
    )
    option.impratio = config.impratio
    for index, name in enumerate(JOINTS):
        spec.joint(name).frictionloss = config.friction_loss[index % 3]
        actuator = spec.actuator(name)
        actuator.gainprm[0] = config.kp
        actuator.biasprm[1] = -config.kp
        actuator.biasprm[2] = -config.kd
    for foot in FEET:
        geom = spec.geom(foot)
        geom.size[0] = config.foot_radius
        geom.friction[0] = config.foot_friction
    key = spec.key("default")
    key.qpos = [*list(key.qpos)[:7], *config.default_pose]
    key.ctrl = list(config.default_pose)
    return spec.compile()


@lru_cache(maxsize=8)
def settled_qpos(config: Go1Config) -> np.ndarray:
    """[19] the stand that action 0 sinks into, at the origin (spec 7).

    Dropped from 0.34 m and left alone for 4000 physics steps: the PD sag is part of it.
    """
    model = build_model(config)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key("default").id)
    data.qpos[2] = SETTLE_HEIGHT
    mujoco.mj_step(model, data, SETTLE_STEPS)
    qpos = data.qpos.copy()
    qpos[:2] = 0.0
    qpos.setflags(write=False)
    return qpos


def sensor_indices(model: mujoco.MjModel, names: list[str]) -> np.ndarray:
    """[n, d] places in `sensordata` of n sensors of d numbers each."""
    sensors = [model.sensor(name) for name in names]
    return np.stack([np.arange(sensor.adr[0], sensor.adr[0] + sensor.dim[0]) for sensor in sensors])
