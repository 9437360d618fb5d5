"""Recording and drawing a Go1, and the scripted walk that is drawn before there is a policy."""

import numpy as np
import pytest

from acpo.errors import UserError
from acpo.tasks.quadruped import make, viewer
from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.model import FEET
from acpo.tasks.quadruped.native import Go1Native
from acpo.tasks.quadruped.trot import FEET as STANCE
from acpo.tasks.quadruped.trot import foot_heights, leg_joints, trot


def still(observation):
    return np.zeros((len(observation), 12), np.float32)


def test_a_recording_follows_its_commands():
    task = make(4, "native", evaluation=True, reset="exact")
    recording = viewer.record(task, still, steps=8, commands=((0, (0.0, 0.0, 0.0)), (5, (0.5, 0.0, -0.2))))
    assert [len(column) for column in recording] == [8] * 7
    np.testing.assert_allclose(recording.command[4:6], [[0, 0, 0], [0.5, 0, -0.2]], atol=1e-6)
    assert recording.contact.all() and len(FEET) == recording.contact.shape[1]
    np.testing.assert_allclose(recording.schedule[4], [0.999645, 0.000355, 0.000355, 0.999645], atol=1e-5)
    assert (recording.costs < 1e-6).all()


def test_frames_show_robot_and_strip():
    task = make(4, "native", evaluation=True, reset="exact")
    recording = viewer.record(task, still, steps=3)
    try:
        images = list(viewer.frames(recording, task.config, width=320, scene_height=160, strip_height=160))
    except UserError as error:
        pytest.skip(str(error))
    assert [image.shape for image in images] == [(320, 320, 3)] * 2
    assert all(image.dtype == np.uint8 for image in images)
    assert images[0][:160].std() > 10 and images[0][160:].std() > 10


def test_inverse_kinematics_inverts():
    joints = np.array(Go1Config().default_pose).reshape(4, 3)
    feet = np.column_stack([STANCE, foot_heights(joints)])
    np.testing.assert_allclose(leg_joints(feet), joints, atol=2e-3)


@pytest.mark.long
def test_a_scripted_trot_scores_what_the_specification_measured():
    """The specification's own crude trot scored 0.92 at 0.5 m/s, with a few costs near a budget of 2."""
    config = Go1Config(reset="exact", random_phase=False, random_clocks=False, command_steps=10_000)
    task = Go1Native(config, 1, threads=1)
    task.reset(0)
    command = np.array([0.5, 0.0, 0.0])
    task.set_commands(command[None])
    returns, costs = 0.0, np.zeros(8)
    for step in range(1000):
        result = task.step(trot(config, command, step)[None])
        assert not result.terminated[0]
        returns += float(result.reward[0])
        costs += result.costs[0]
    assert task.reported_return(np.asarray(returns), np.asarray(1000)) == pytest.approx(0.97, abs=0.05)
    assert (costs < 2).all()
