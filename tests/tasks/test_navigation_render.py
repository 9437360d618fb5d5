"""Pictures: the right colours in the right places."""

import jax
import numpy as np
import pytest

from acpo import tasks
from acpo.errors import UserError
from acpo.tasks.navigation.goal import GoalState


@pytest.fixture(scope="module")
def task():
    """A Point at the origin, a goal 1 m to the east, hazards out of sight but one 1 m to the north."""
    task = tasks.make("PointGoal1", 1, "native", random_phases=False)
    task.reset(0)
    physics = task.physics.state()
    qpos = np.zeros_like(physics.qpos)
    qpos[0, 3:] = 0.0, -1.0, 0.1, 1.0, 0.0, 0.0, 0.0
    hazards = np.full((1, 8, 2), 9.0)
    hazards[0, 0] = 0.0, 1.0
    game = GoalState(np.array([[1.0, 0.0]]), hazards, np.ones(1))
    task.set_state(qpos, np.zeros_like(physics.qvel), game, np.zeros(1, np.int32))
    yield task
    task.close()


def test_the_picture_from_above(task):
    image = task.render(0, top=True, size=190)  # 2 cm a pixel, centre at (95, 95)
    assert image.shape == (190, 190, 3) and image.dtype == np.uint8
    red, green, blue = image[95, 95].astype(int)
    assert red > 200 and green < 120  # the robot
    red, green, blue = image[95, 145].astype(int)
    assert green > red + 30 and green > blue + 20  # the goal, to the right
    red, green, blue = image[45, 95].astype(int)
    assert blue > red + 30  # the hazard, up
    red, green, blue = image[145, 95].astype(int)
    assert green > 150 > red  # the vase, down
    assert (image[5, 5] > 215).all()  # nothing


def test_the_picture_by_mujoco(task):
    try:
        image = task.render(0)
    except UserError as error:
        pytest.skip(str(error))
    assert image.shape == (480, 480, 3)
    colours = image.reshape(-1, 3).astype(int)
    red, green, blue = colours.T
    assert ((red > green + 60) & (red > blue + 60)).sum() > 100  # robot
    assert ((green > red + 25) & (green > blue + 20)).sum() > 1000  # goal
    assert ((blue > red + 30) & (blue > green + 20)).sum() > 500  # hazard


def test_every_task_has_a_picture():
    with jax.enable_x64(False):
        for name in ("CarCircle2", "CarGoal0"):
            task = tasks.make(name, 2, "native")
            task.reset(0)
            assert task.render(1, top=True, size=64).std() > 5
