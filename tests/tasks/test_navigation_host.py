"""The batched task on the host: episodes, resets, exact resume, failures."""

import numpy as np
import pytest

from acpo import tasks
from acpo.tasks.base import HostTask
from acpo.tasks.navigation.goal import GoalState
from acpo.tasks.navigation.host import NavigationTask
from acpo.tasks.navigation.model import build_model
from acpo.tasks.navigation.robot import CAR, POINT

ENVS = 64
"""The same everywhere, so that the compiled functions are shared between tests."""


def make(name: str, num_envs: int = ENVS, **options) -> NavigationTask:
    return tasks.make(name, num_envs, "native", **options)


def actions(count: int, envs: int = ENVS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, envs, 2)).astype(np.float32)


def assert_same(a, b) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def test_masses_of_the_robots():
    """Specification, section 1."""
    point, car = build_model(POINT, 1, False), build_model(CAR, 1, False)
    assert point.body("agent").mass[0] == pytest.approx(0.00518879, rel=1e-6)
    assert point.body("agent").ipos[0] == pytest.approx(0.0192723, rel=1e-5)
    np.testing.assert_allclose(car.body_mass[1:], [0.0239, 0.0019635, 0.0019635, 0.00261799, 8e-6], rtol=1e-5)
    np.testing.assert_allclose(car.body("agent").ipos, [0, 0.003954, 0.001004], atol=1e-6)
    assert (point.nq, point.nv, car.nq, car.nv) == (10, 9, 20, 17)


def test_a_batch_of_a_registered_task():
    task = make("PointGoal1")
    assert isinstance(task, HostTask)
    start = task.reset(0)
    assert start.observation.shape == (ENVS, 60) and start.observation.dtype == np.float32
    step = task.step(actions(1)[0])
    assert step.observation.dtype == step.reward.dtype == step.costs.dtype == np.float32
    assert step.costs.shape == (ENVS, 1) and not step.failed.any()
    np.testing.assert_array_equal(step.observation, step.final_observation)


def test_the_same_seed_gives_the_same_layout_to_point_and_car():
    point, car = make("PointGoal1"), make("CarGoal1")
    point.reset(5), car.reset(5)
    assert_same(point.state.game, car.state.game)
    a, b = np.asarray(point.physics.state().qpos), np.asarray(car.physics.state().qpos)
    np.testing.assert_array_equal(a[:, :2], b[:, :2])
    np.testing.assert_array_equal(a[:, 3:], b[:, 13:])
    point.reset(6)
    assert not np.array_equal(point.state.game.goal_xy, car.state.game.goal_xy)


def test_clocks_start_at_random_phases_and_episodes_end_on_time():
    task = make("PointCircle1")
    elapsed = task.reset(1).elapsed
    assert elapsed.min() < 100 and elapsed.max() >= 400 and (elapsed < 500).all()
    moves = actions(500)
    ends = np.zeros((500, ENVS), bool)
    lengths = []
    for i, move in enumerate(moves):
        step = task.step(move)
        assert not step.terminated.any()
        ends[i] = step.truncated
        lengths.extend(task.ended.length)
        same = (step.observation == step.final_observation).all(axis=1)
        np.testing.assert_array_equal(same, ~step.truncated)
    np.testing.assert_array_equal(ends.argmax(axis=0), 499 - elapsed)
    assert ends.sum() == ENVS and lengths == [500] * ENVS


def test_without_phases_clocks_start_at_zero():
    assert make("PointCircle1", random_phases=False).reset(0).elapsed.tolist() == [0] * ENVS


def test_returns_and_costs_of_episodes_are_their_sums():
    task = make("PointCircle1", random_phases=False, dtype="float64")
    task.reset(0)
    reward, cost = np.zeros(ENVS), np.zeros(ENVS)
    for _ in range(500):
        step = task.step(np.tile([1.0, 0.1], (ENVS, 1)))
        reward += step.reward
        cost += step.costs[:, 0]
    np.testing.assert_allclose(task.ended.episode_return, reward, rtol=1e-12)
    np.testing.assert_array_equal(task.ended.episode_costs[:, 0], cost)
    assert cost.max() > 0


def test_actions_are_clipped_and_a_small_one_is_already_full_force():
    """Specification, section 0, item 3: the force limit binds at 0.05 of the Point's range."""
    states = []
    for push in (0.05, 1.0, 30.0):
        task = make("PointCircle1", random_phases=False)
        task.reset(0)
        task.step(np.tile([push, 0.0], (ENVS, 1)))
        states.append(task.physics.state().qvel[:, :2])
    assert_same(states[1:2], states[2:])
    assert_same(states[:1], states[1:2])


def test_terminal_speed_of_the_point():
    """0.015 N against a damping of 0.01: 1.5 m/s (section 1)."""
    task = make("PointCircle1", random_phases=False)
    task.reset(0)
    for _ in range(300):
        task.step(np.tile([1.0, 0.0], (ENVS, 1)))
    speed = np.hypot(*np.asarray(task.physics.state().qvel)[:, :2].T)
    np.testing.assert_allclose(speed, 1.5, rtol=0.01)


@pytest.mark.parametrize("name", ["PointGoal1", "CarCircle1"])
def test_a_loaded_task_goes_on_bit_for_bit(name):
    """Through resets, met goals and a change of the layout pool."""
    straight, resumed = make(name), make(name)
    straight.reset(2)
    moves = actions(90)
    for move in moves[:40]:
        straight.step(move)
    saved = straight.save()
    assert all(isinstance(value, np.ndarray) and value.dtype != object for value in saved.values())
    resumed.load({key: value.copy() for key, value in saved.items()})
    ends = 0
    for move in moves[40:]:
        expected = straight.step(move)
        assert_same(resumed.step(move), expected)
        ends += expected.truncated.sum()
    assert ends > 0
    for key, value in straight.save().items():
        np.testing.assert_array_equal(resumed.save()[key], value)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_do_not_change_results(threads):
    outcomes = []
    for count in (threads, 3):
        task = make("CarGoal1", threads=count)
        task.reset(0)
        outcomes.append([task.step(move) for move in actions(5)][-1])
    assert_same(*outcomes)


def test_a_world_that_breaks_ends_and_leaves_the_others_untouched():
    sick, well = (make("PointGoal1", random_phases=False) for _ in "ab")
    sick.reset(0), well.reset(0)
    moves = actions(6)
    for move in moves[:3]:
        before, _ = sick.step(move), well.step(move)
    qvel = np.asarray(sick.physics.state().qvel)[[2]].copy()
    qvel[0, 0] = np.nan
    sick.physics.set_state(np.array([2]), sick.physics.state().qpos[[2]], qvel)
    step, expected = sick.step(moves[3]), well.step(moves[3])
    assert np.flatnonzero(step.failed).tolist() == [2] and sick.failures == 1
    assert np.flatnonzero(step.truncated).tolist() == [2] and not step.terminated.any()
    assert step.reward[2] == -10 and np.isfinite(step.observation).all()
    np.testing.assert_array_equal(step.final_observation[2], before.observation[2])
    others = np.arange(ENVS) != 2
    for a, b in zip(step[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(np.asarray(a)[others], np.asarray(b)[others])
    for move in moves[4:]:
        step, expected = sick.step(move), well.step(move)
        assert not step.failed.any()
        np.testing.assert_array_equal(step.observation[others], expected.observation[others])


def test_a_robot_on_its_goal_meets_it_once():
    task = make("PointGoal1", random_phases=False)
    task.reset(0)
    state, physics = task.state, task.physics.state()
    away = np.tile([[0.0, 0.9]], (ENVS, 1))
    away[:2] = [[0.1, 0.0], [0.0, 0.29]]
    game = GoalState(
        np.asarray(physics.qpos)[:, :2] + away, state.game.hazards_xy, np.linalg.norm(away, axis=1)
    )
    task.set_state(physics.qpos, physics.qvel, game, np.zeros(ENVS, np.int32))
    step = task.step(np.zeros((ENVS, 2)))
    assert np.flatnonzero(task.goal_met).tolist() == [0, 1]
    np.testing.assert_allclose(step.reward[:3], [1, 1, 0], atol=1e-3)
    assert not (step.terminated | step.truncated).any()
    step = task.step(np.zeros((ENVS, 2)))
    assert not task.goal_met.any() and np.abs(step.reward).max() < 0.01


def test_vases_cost_at_level_two_when_touched():
    """A robot driven into a vase pays for the touch, and for the vase's motion."""
    task = make("PointGoal2", 1, random_phases=False)
    task.reset(0)
    physics = task.physics.state()
    qpos, qvel = np.array(physics.qpos), np.array(physics.qvel)
    vases = qpos[:, 3:].reshape(1, 10, 7)
    vases[0, :, 0], vases[0, :, 1] = 4.0, np.arange(10)
    vases[0, 0, :2] = 0.45, 0.0
    vases[0, 0, 3:] = 1, 0, 0, 0
    qpos[0, :3] = 0.0
    qpos[0, 3:] = vases.ravel()
    state = task.state
    hazards = np.full((1, 10, 2), 9.0)
    task.set_state(qpos, qvel, GoalState(np.array([[-1.0, 0.0]]), hazards, np.ones(1)), state.clock)
    costs = np.array([task.step(np.array([[1.0, 0.0]])).costs[0] for _ in range(40)])
    assert costs[0].tolist() == [0, 0, 0] and not costs[:, 0].any()
    assert costs[:, 1].any() and costs[:, 2].any()
    moving = np.flatnonzero(costs[:, 2])
    assert costs[moving[0] : moving[0] + 2, 2].all()


def test_a_vase_in_reach_is_simulated_and_one_out_of_reach_is_not():
    task = make("PointGoal2", 1, random_phases=False)
    task.reset(0)
    for _ in range(40):  # until all lie still
        task.step(np.zeros((1, 2)))
    assert task.physics.parked.any()
    near = np.asarray(task.physics.state().qpos)[0, :2]
    vases = np.asarray(task.physics.state().qpos)[0, 3:].reshape(10, 7)[:, :2]
    distance = np.linalg.norm(vases - near, axis=1)
    assert task.physics.parked[0, distance > 0.7].all()
    assert not task.physics.parked[0, distance < 0.35].any()


def test_the_sinking_vase_settles_before_it_is_left_out():
    task = make("PointGoal1", random_phases=False)
    task.reset(0)
    task.step(np.zeros((ENVS, 2)))
    assert not task.physics.parked.any()
    for _ in range(30):
        task.step(np.zeros((ENVS, 2)))
    assert task.physics.parked.all()
    height = np.asarray(task.physics.state().qpos)[:, 5]
    np.testing.assert_allclose(height, 0.1 - 4.36194799e-05, atol=1e-7)


def test_hazards_goal_and_walls_are_not_bodies():
    assert make("CarGoal1", 1).model.nbody == 1 + 4 + 1
    assert make("CarCircle2", 1).model.nbody == 1 + 4
    assert make("PointGoal2", 1).model.nbody == 1 + 1 + 10
