"""Step for step equal to the original, within the tolerances of the navigation specification, section 9."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import replay

DATA = Path(__file__).parents[1] / "data"
TASKS = ("PointGoal1", "CarGoal1", "PointCircle1", "CarCircle1")
SENSORS = ("accelerometer", "velocimeter", "gyro", "magnetometer")
CAR_SENSORS = (*SENSORS, "ballangvel_rear", "ballquat_rear")


@pytest.fixture(scope="module")
def errors():
    return {task: replay.replay(DATA / f"trace_{task}.npz") for task in TASKS}


@pytest.mark.parametrize("task", TASKS)
def test_physics_of_one_step(errors, task):
    found = errors[task]
    point = task.startswith("Point")
    assert found["task"] == task and found["steps"] == 170 and found["broken_worlds"] == 0
    assert found["qpos_rest"]["max"] < (1e-8 if point else 1e-7)
    assert found["qvel_rest"]["max"] < (1e-8 if point else 5e-6)
    for name in SENSORS if point else CAR_SENSORS:
        assert found[f"{name}_rest"]["max"] < (1e-8 if point else 1e-5), name
    assert found["qpos_rest"]["steps"] > 100


@pytest.mark.parametrize("task", ["PointGoal1", "CarGoal1"])
def test_physics_while_the_vase_moves(errors, task):
    found = errors[task]
    assert found["qpos_moving"]["steps"] > 10
    assert found["qpos_moving"]["max"] < 1e-4
    assert found["qvel_moving"]["max"] < 2e-2


@pytest.mark.parametrize("task", ["PointGoal1", "CarGoal1"])
def test_leaving_resting_vases_out_changes_nothing_of_the_robot(errors, task):
    """The vase itself stays within 1e-7 m of where the original has it."""
    simulated = replay.replay(DATA / f"trace_{task}.npz", park=False)
    for name in ("qpos", "qvel", *SENSORS):
        difference = simulated[f"{name}_rest"]["max"] - errors[task][f"{name}_rest"]["max"]
        assert abs(difference) < 1e-12, name
    assert errors[task]["vase_qpos_rest"]["max"] < 1e-7
    assert errors[task]["vase_qvel_rest"]["max"] < 2e-6


@pytest.mark.parametrize("task", TASKS)
def test_task_logic_from_given_states(errors, task):
    found = errors[task]
    lidars = ("goal", "hazards", "vases") if "Goal" in task else ("circle",)
    for name in (*(f"{kind}_lidar" for kind in lidars), "reward", "cost"):
        assert found[name]["max"] < 1e-9, name
    for flag in ("terminated", "truncated", "goal_met"):
        assert found[f"{flag}_mismatches"] == 0, flag
    assert found.get("new_goals_misplaced", 0) == 0


@pytest.mark.parametrize("task", TASKS)
def test_the_recordings_hold_what_matters(task):
    trace = replay.load(DATA / f"trace_{task}.npz")
    cost = trace["cost_sum"]
    assert trace["truncated"].sum() == 1 and 5 < cost.sum() < 165
    if "Goal" in task:
        assert trace["goal_met"].sum() >= 10 and trace["vase_contact"].sum() >= 15


def test_the_script_prints_one_line_of_json():
    script = Path(replay.__file__)
    command = [sys.executable, str(script), str(DATA / "trace_PointCircle1.npz")]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert out.count("\n") == 1
    assert json.loads(out)["qvel_rest"]["max"] < 1e-8


def test_the_turn_of_a_recorded_point_is_undone():
    np.testing.assert_allclose(replay.turn(np.array([np.pi / 2]), np.array([[1.0, 2.0]])), [[-2.0, 1.0]])
