"""Pinned tests 1 to 6: the robot in its MJCF (spec 1)."""

import mujoco
import numpy as np
import pytest

from acpo.tasks.quadruped.config import Go1Config, make_config
from acpo.tasks.quadruped.model import FEET, JOINTS, LEGS, LINKS, build_model, settled_qpos

DEFAULT = [-0.1, 0.8, -1.5, 0.1, 0.8, -1.5, -0.1, 1.0, -1.5, 0.1, 1.0, -1.5]

# Full inertias (xx yy zz xy xz yz), and Menagerie's principal moments with their quaternions.
PRINCIPAL = {
    "trunk": ([0.0716565, 0.0630105, 0.0168101], [-0.00342088, 0.705204, 0.000106698, 0.708996]),
    "FR_hip": ([0.000734064, 0.000468438, 0.000398719], [0.507341, 0.514169, 0.495027, 0.482891]),
    "FL_hip": ([0.000734064, 0.000468438, 0.000398719], [0.482891, 0.495027, 0.514169, 0.507341]),
    "RR_hip": ([0.000734064, 0.000468438, 0.000398719], [0.495027, 0.482891, 0.507341, 0.514169]),
    "RL_hip": ([0.000734064, 0.000468438, 0.000398719], [0.514169, 0.507341, 0.482891, 0.495027]),
}
for _leg in LEGS:
    _right = _leg[1] == "R"
    PRINCIPAL[f"{_leg}_thigh"] = (
        [0.00478717, 0.00460903, 0.000709268],
        [0.65243, -0.0272313, 0.0775126, 0.753383] if _right else [0.753383, 0.0775126, -0.0272313, 0.65243],
    )
    PRINCIPAL[f"{_leg}_calf"] = (
        [0.00149767, 0.00148468, 3.58427e-05],
        [0.691246, 0.00357467, 0.00511118, 0.722592],
    )


def table_inertia(body: str) -> np.ndarray:
    """The specification's table of inertias about the centre of mass, body axes."""
    front = 1 if body[0] == "F" else -1
    left = 1 if body[1:2] == "L" else -1
    rows = {
        "trunk": (1.681283e-2, 6.300955e-2, 7.165473e-2, -2.297e-4, -2.946e-4, -4.187e-5),
        "hip": (
            3.993798e-4,
            7.334193e-4,
            4.684219e-4,
            -1.459e-5 * front * left,
            1.246e-6 * front,
            1.575e-6 * left,
        ),
        "thigh": (4.598798e-3, 4.689223e-3, 8.174477e-4, 6.137e-5 * left, -2.275e-4, 6.108e-4 * left),
        "calf": (1.484489e-3, 1.497636e-3, 3.606819e-5, -6.186e-7, -1.772e-5, -3.566e-6),
    }
    xx, yy, zz, xy, xz, yz = rows[body.rsplit("_", maxsplit=1)[-1]]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def tensor(moments: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, np.asarray(quaternion, float) / np.linalg.norm(quaternion))
    axes = rotation.reshape(3, 3)
    return axes @ np.diag(moments) @ axes.T


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return build_model(Go1Config())


def test_pin_01_mass_and_inertias_equal_both_tables(model):
    np.testing.assert_allclose(model.body_mass.sum(), 12.743448, atol=1e-6)
    assert len(PRINCIPAL) == 13
    for body in LINKS:
        index = model.body(body).id
        built = tensor(model.body_inertia[index], model.body_iquat[index])
        scale = np.abs(built).max()
        np.testing.assert_allclose(built, table_inertia(body), atol=1e-3 * scale)
        np.testing.assert_allclose(built, tensor(*PRINCIPAL[body]), atol=1e-3 * scale)
    np.testing.assert_allclose(model.body("trunk").ipos, [0.0223, 0.002, -0.0005])
    np.testing.assert_allclose(model.body("RL_hip").ipos, [0.0049166, -0.00762615, -0.00008865])
    np.testing.assert_allclose(model.body("FR_thigh").ipos, [-0.00304722, 0.019315, -0.0305004])


def test_pin_02_sizes_names_and_limits(model):
    assert (model.nq, model.nv, model.nu) == (19, 18, 12)
    assert LEGS == ("FR", "FL", "RR", "RL")
    assert tuple(model.joint(1 + i).name for i in range(12)) == JOINTS
    assert tuple(model.actuator(i).name for i in range(12)) == JOINTS
    assert JOINTS[:4] == ("FR_hip", "FR_thigh", "FR_calf", "FL_hip")
    for i in range(12):
        low, high, torque = [
            (-0.863, 0.863, 23.7),
            (-0.686, 4.501, 23.7),
            (-2.818, -0.888, 35.55),
        ][i % 3]
        np.testing.assert_allclose(model.jnt_range[1 + i], [low, high])
        np.testing.assert_allclose(model.actuator_forcerange[i], [-torque, torque])
        np.testing.assert_allclose(model.dof_armature[6 + i], 0.00906 if i % 3 == 2 else 0.00403)
    assert not model.dof_damping.any() and not model.dof_frictionloss.any()


def test_pin_03_feet_in_the_default_pose(model):
    data = mujoco.MjData(model)
    data.qpos[:] = [0, 0, 1, 1, 0, 0, 0, *DEFAULT]
    mujoco.mj_kinematics(model, data)
    feet = np.array([data.site(foot).xpos - [0, 0, 1] for foot in FEET])
    expected = [
        (0.1725, -0.157, -0.3018),
        (0.1725, 0.157, -0.3018),
        (-0.2652, -0.1565, -0.2925),
        (-0.2652, 0.1565, -0.2925),
    ]
    np.testing.assert_allclose(feet, expected, atol=5e-4)


def test_pin_04_settled_at_action_zero(model):
    data = mujoco.MjData(model)
    data.qpos[:] = settled_qpos(Go1Config())
    data.ctrl[:] = DEFAULT
    mujoco.mj_step(model, data, 400)
    mujoco.mj_forward(model, data)
    assert abs(data.qpos[2] - 0.2839) < 1e-3
    forces = [np.linalg.norm(data.sensor(f"{foot}_force").data) for foot in FEET]
    assert abs(sum(forces) - 125.01) < 0.1
    np.testing.assert_allclose(forces, [35.7, 36.1, 26.4, 26.8], atol=0.1)
    assert data.ncon == 4
    assert not any(data.sensor(f"{link}_touch").data[0] for link in LINKS)
    assert np.abs(data.qvel).max() < 1e-6
    np.testing.assert_allclose(data.actuator_force[:3], [4.22, 0.52, 5.35], atol=0.01)


@pytest.mark.parametrize(("kp", "height"), [(20.0, 0.2530), (40.0, 0.2886)])
def test_softer_gains_sink_deeper(kp, height):
    assert abs(settled_qpos(make_config(kp=kp))[2] - height) < 3e-3


def test_pin_05_only_the_floor_is_touched(model):
    data = mujoco.MjData(model)
    # All legs folded through the trunk and each other.
    data.qpos[:] = [0, 0, 2, 1, 0, 0, 0, *[0.8, 3.0, -2.8, -0.8, 3.0, -2.8] * 2]
    mujoco.mj_forward(model, data)
    assert data.ncon == 0


def test_pin_06_a_folded_robot_on_the_floor_counts_five_links(model):
    data = mujoco.MjData(model)
    data.qpos[:] = [0, 0, 0.055, 1, 0, 0, 0, *[0, 1.4, -2.7] * 4]
    mujoco.mj_forward(model, data)
    touching = {link for link in LINKS if data.sensor(f"{link}_touch").data[0] > 0}
    assert touching == {"trunk", "FR_calf", "FL_calf", "RR_calf", "RL_calf"}


def test_options_reach_the_model():
    model = build_model(make_config("playground", foot_radius=0.023, cone="elliptic", impratio=10.0))
    np.testing.assert_allclose(model.dof_frictionloss[6:], [0.3, 0.3, 1.0] * 4)
    np.testing.assert_allclose(model.actuator_biasprm[:, :3], [[0, -35, -0.5]] * 12)
    assert model.geom("RL_foot").size[0] == 0.023
    assert model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC and model.opt.impratio == 10.0
    assert (model.opt.iterations, model.opt.ls_iterations) == (4, 8)
