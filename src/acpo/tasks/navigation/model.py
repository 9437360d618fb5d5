"""The MuJoCo model of a task: the robot's file, and as many vases as the level has.

Hazards, goal, circle and walls never collide with anything (specification, section 0), so they
are task state and not bodies.
"""

from __future__ import annotations

from importlib import resources

import mujoco

from acpo.tasks.navigation.game import VASE_HALF_SIZE, VASE_SINK
from acpo.tasks.navigation.robot import Robot

VASE_DENSITY = 0.001


def build_spec(robot: Robot, vases: int, touch: bool) -> mujoco.MjSpec:
    """`touch` adds a sensor to each vase that counts its contacts with the robot."""
    text = (resources.files(__package__) / robot.file).read_text()
    spec = mujoco.MjSpec.from_string(text)
    if vases <= 1:
        # To split so few bodies into independent groups costs the Car more than it saves.
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    spec.visual.headlight.ambient = [0.45, 0.45, 0.45]
    spec.visual.headlight.diffuse = [0.45, 0.45, 0.45]
    for name in vase_names(vases):
        body = spec.worldbody.add_body(name=name, pos=[0, 0, VASE_HALF_SIZE - VASE_SINK])
        body.add_freejoint(name=name)
        body.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[VASE_HALF_SIZE] * 3,
            density=VASE_DENSITY,
            condim=6,
            rgba=[0.2, 0.7, 0.75, 1],
        )
        if touch:
            spec.add_sensor(
                name=f"{name}_touched",
                type=mujoco.mjtSensor.mjSENS_CONTACT,
                objtype=mujoco.mjtObj.mjOBJ_XBODY,
                objname="agent",
                reftype=mujoco.mjtObj.mjOBJ_BODY,
                refname=name,
                intprm=[1 << int(mujoco.mjtConDataField.mjCONDATA_FOUND), 0, 1],
            )
    return spec


def build_model(robot: Robot, vases: int, touch: bool) -> mujoco.MjModel:
    return build_spec(robot, vases, touch).compile()


def vase_names(vases: int) -> list[str]:
    return [f"vase{i}" for i in range(vases)]
