"""The threaded MuJoCo backend: exact against a plain loop, exact on resume, honest about failure."""

import mujoco
import numpy as np
import pytest

from acpo.physics.native import NativePhysics

SLIDER = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body pos="0 0 0.2"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
    <body pos="1 0 0.5"><joint name="x" type="slide" axis="1 0 0" damping="0.1"/>
      <geom type="sphere" size="0.1" mass="0.5"/><site name="here"/></body>
  </worldbody>
  <actuator><motor joint="x"/></actuator>
  <sensor><accelerometer site="here"/><velocimeter site="here"/></sensor>
</mujoco>
"""


@pytest.fixture
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(SLIDER)


def loop(model: mujoco.MjModel, qpos: np.ndarray, controls: np.ndarray, substeps: int) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    for ctrl in controls:
        data.ctrl[:] = ctrl
        mujoco.mj_step(model, data, substeps)
        mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_steps_equal_a_plain_loop_bit_for_bit(model, persistent, threads):
    physics = NativePhysics(model, 3, substeps=4, threads=threads, persistent=persistent)
    qpos = np.tile(model.qpos0, (3, 1))
    qpos[:, -1] = [0.0, 0.3, -0.2]
    physics.set_state(np.arange(3), qpos, np.zeros((3, model.nv)))
    controls = np.random.default_rng(0).normal(size=(20, 3, 1))
    for ctrl in controls:
        state, broken = physics.step(ctrl)
    assert not broken.any()
    for world in range(3):
        data = loop(model, qpos[world], controls[:, world], 4)
        np.testing.assert_array_equal(state.qpos[world], data.qpos)
        np.testing.assert_array_equal(state.qvel[world], data.qvel)
        np.testing.assert_array_equal(state.sensordata[world], data.sensordata)


def test_the_accelerometer_belongs_to_the_final_state_and_the_present_control(model):
    physics = NativePhysics(model, 1, substeps=1)
    state, _ = physics.step(np.array([[2.0]]))
    velocity = state.qvel[0, -1]
    assert state.sensordata[0, 0] == pytest.approx((2.0 - 0.1 * velocity) / 0.5, rel=1e-12)
    assert state.sensordata[0, 3] == velocity


@pytest.mark.parametrize("persistent", [False, True])
def test_a_loaded_batch_goes_on_bit_for_bit(model, persistent):
    controls = np.random.default_rng(1).normal(size=(12, 4, 1))
    straight = NativePhysics(model, 4, substeps=3, persistent=persistent)
    for ctrl in controls[:5]:
        straight.step(ctrl)
    saved = straight.save()
    resumed = NativePhysics(model, 4, substeps=3, persistent=persistent)
    resumed.load(saved)
    for ctrl in controls[5:]:
        expected, _ = straight.step(ctrl)
        state, _ = resumed.step(ctrl)
        for a, b in zip(state, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("poison", ["velocity", "control"])
def test_a_broken_world_is_named_and_the_others_go_on_untouched(model, poison):
    bad, good = (NativePhysics(model, 3, substeps=4) for _ in range(2))
    ctrl = np.ones((3, 1))
    if poison == "velocity":
        qvel = np.zeros((1, model.nv))
        qvel[0, 2] = np.nan
        bad.set_state(np.array([1]), model.qpos0[None], qvel)
    else:
        ctrl[1] = np.nan
    state, broken = bad.step(ctrl)
    expected, none = good.step(np.ones((3, 1)))
    assert broken.tolist() == [False, True, False] and not none.any()
    for a, b in zip(state, expected, strict=True):
        np.testing.assert_array_equal(a[[0, 2]], b[[0, 2]])
    bad.set_state(broken, model.qpos0[None], np.zeros((1, model.nv)))
    _, broken = bad.step(np.ones((3, 1)))
    assert not broken.any()


def test_setting_some_worlds_leaves_the_others(model):
    physics = NativePhysics(model, 3, substeps=2)
    before, _ = physics.step(np.ones((3, 1)))
    qpos = np.tile(model.qpos0, (2, 1))
    qpos[:, -1] = [5.0, 6.0]
    physics.set_state(np.array([True, False, True]), qpos, np.zeros((2, model.nv)))
    after = physics.forward()
    assert after.qpos[[0, 2], -1].tolist() == [5.0, 6.0]
    np.testing.assert_array_equal(after.qpos[1], before.qpos[1])
    np.testing.assert_array_equal(after.qvel[1], before.qvel[1])
