"""Lidar, rewards and costs on numbers worked out by hand (navigation specification, 3 to 5 and 11)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acpo.physics.state import PhysicsState
from acpo.tasks.navigation import rules
from acpo.tasks.navigation.circle import Circle, CircleState
from acpo.tasks.navigation.game import World
from acpo.tasks.navigation.goal import Goal, GoalState
from acpo.tasks.navigation.lidar import lidar
from acpo.tasks.navigation.robot import Body, quaternion_about_z, rotation_about_z, rotation_of


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def body(xy=(0.0, 0.0), yaw=0.0, velocity=(0.0, 0.0)) -> Body:
    return Body(jnp.array([[*xy, 0.1]]), rotation_about_z(jnp.array([yaw])), jnp.array([[*velocity, 0.0]]))


def world(xy=(0.0, 0.0), vases=((5.0, 5.0),), speeds=None, touched=None, **kwargs) -> World:
    count = len(vases)
    return World(
        body(xy, **kwargs),
        jnp.array([vases]).reshape(1, count, 2),
        jnp.zeros((1, count)) if speeds is None else jnp.array([speeds]),
        jnp.zeros((1, count), bool) if touched is None else jnp.array([touched]),
    )


def goal_state(goal=(1.0, 0.0), hazards=((5.0, 5.0),) * 8, last=1.0) -> GoalState:
    return GoalState(jnp.array([goal]), jnp.array([hazards]), jnp.array([last]))


KEY = jax.random.PRNGKey(0)


def test_lidar_of_one_target_a_quarter_into_bin_two():
    """At 2.25 bins and 1.5 of 3 m: closeness 1/2, a quarter of it in bin 3, the rest in bin 1."""
    angle = 2.25 * np.pi / 8
    seen = lidar(body(), 1.5 * jnp.array([[[np.cos(angle), np.sin(angle)]]]), 3.0)[0]
    expected = np.zeros(16)
    expected[[1, 2, 3]] = 0.375, 0.5, 0.125
    np.testing.assert_allclose(seen, expected, atol=1e-15)


def test_lidar_turns_with_the_robot_and_wraps_around():
    """A target straight ahead lies on the border of bins 15 and 0."""
    seen = lidar(body((1.0, 1.0), yaw=np.pi / 2), jnp.array([[[1.0, 2.0]]]), 2.0)[0]
    assert float(jnp.maximum(seen[15], seen[0])) == pytest.approx(0.5)
    assert float(seen.sum()) == pytest.approx(1.0)
    assert set(np.flatnonzero(seen > 1e-9)) in ({15, 0}, {14, 15, 0}, {15, 0, 1})


def test_lidar_takes_the_nearest_and_forgets_what_is_out_of_reach():
    middle = np.pi / 16
    ahead = np.array([np.cos(middle), np.sin(middle)])
    seen = np.asarray(lidar(body(), jnp.array([[ahead, 2 * ahead, 7 * ahead]]), 3.0)[0])
    np.testing.assert_allclose(seen[[15, 0, 1]], [1 / 3, 2 / 3, 1 / 3], atol=1e-12)
    assert float(lidar(body(), jnp.array([[7 * ahead]]), 3.0).max()) == 0.0


def test_lidar_of_a_tilted_robot_looks_at_height_zero():
    """Rolled by 90°: the robot's y points up, so a target 1 m along x is seen 0.1 m below it."""
    rolled = jnp.array([[[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]]])
    robot = body()._replace(rotation=rolled)
    distance = np.hypot(1.0, 0.1)
    assert float(lidar(robot, jnp.array([[[1.0, 0.0]]]), 3.0).max()) == pytest.approx((3 - distance) / 3)


def test_goal_reward_is_the_progress_made():
    _, out = Goal(1).advance(KEY, goal_state(last=1.25), world())
    assert float(out.reward[0]) == pytest.approx(0.25)
    assert not out.goal_met[0]


@pytest.mark.parametrize(("distance", "met"), [(0.3, True), (0.3 + 1e-9, False)])
def test_a_met_goal_pays_one_and_moves(distance, met):
    state, out = Goal(1).advance(KEY, goal_state((distance, 0.0), last=0.35), world())
    assert float(out.reward[0]) == pytest.approx(0.35 - distance + met)
    assert bool(out.goal_met[0]) == met
    moved = not np.allclose(state.goal_xy, [[distance, 0.0]])
    assert moved == met
    # The jump is never rewarded: the next step starts from the distance to the new goal.
    np.testing.assert_allclose(state.last_distance, np.linalg.norm(state.goal_xy, axis=1))


@pytest.mark.parametrize(("distance", "cost"), [(0.2, 0.0), (0.2 - 1e-9, 1.0), (0.0, 1.0)])
def test_a_hazard_costs_one_within_its_radius(distance, cost):
    hazards = ((distance, 0.0), (0.0, distance), *((5.0, 5.0),) * 6)
    _, out = Goal(1).advance(KEY, goal_state(hazards=hazards), world())
    assert out.costs.tolist() == [[cost]]  # two overlapping hazards still cost one


def test_vases_cost_at_level_two_only():
    hazards = ((5.0, 5.0),) * 10
    around = [(4.0, float(i)) for i in range(10)]
    speeds, touched = [0.0] * 9 + [1e-4], [True] + [False] * 9
    _, out = Goal(2).advance(
        KEY, goal_state(hazards=hazards), world(vases=around, speeds=speeds, touched=touched)
    )
    assert out.costs.tolist() == [[0.0, 1.0, 1.0]]
    speeds[9] = 0.99e-4
    _, out = Goal(2).advance(KEY, goal_state(hazards=hazards), world(vases=around, speeds=speeds))
    assert out.costs.tolist() == [[0.0, 0.0, 0.0]]


def test_circle_reward_at_a_known_place():
    """At (0, 1) moving by (−1, 0): x v − y u = 1, r = 1, so 0.1 · 1 / 1 / (1 + 0.5)."""
    _, out = Circle(1).advance(KEY, CircleState(), world((0.0, 1.0), velocity=(-1.0, 0.0)))
    assert float(out.reward[0]) == pytest.approx(0.1 / 1.5, abs=1e-15)
    _, out = Circle(1).advance(KEY, CircleState(), world((0.0, 0.0), velocity=(-1.0, 0.0)))
    assert float(out.reward[0]) == 0.0


@pytest.mark.parametrize(
    ("level", "xy", "cost"),
    [
        (1, (1.125, 0.0), 0.0), (1, (1.1251, 0.0), 1.0), (1, (-1.1251, 0.0), 1.0), (1, (0.0, 1.2), 0.0),
        (2, (0.0, 1.2), 1.0), (2, (1.2, 1.2), 1.0), (0, (3.0, 3.0), 0.0),
    ],
)  # fmt: skip
def test_circle_costs_beyond_the_walls(level, xy, cost):
    _, out = Circle(level).advance(KEY, CircleState(), world(xy))
    assert out.costs.tolist() == [[cost]]


@pytest.mark.parametrize(
    ("robot", "goal", "level", "size", "costs"),
    [
        ("Point", "Goal", 0, 28, 1), ("Car", "Goal", 0, 40, 1), ("Point", "Goal", 1, 60, 1),
        ("Car", "Goal", 1, 72, 1), ("Point", "Goal", 2, 60, 3), ("Car", "Goal", 2, 72, 3),
        ("Point", "Circle", 0, 28, 1), ("Point", "Circle", 1, 28, 1), ("Car", "Circle", 2, 40, 1),
    ],
)  # fmt: skip
def test_sizes(robot, goal, level, size, costs):
    spec = rules(robot, goal, level).spec()
    assert (spec.observation_size, len(spec.costs)) == (size, costs)
    assert spec.episode_steps == (1000 if goal == "Goal" else 500)


def test_a_broken_world_keeps_its_last_observation_and_pays_ten():
    task = rules("Point", "Circle", 1)
    layout = task.game.sample(KEY, 3)
    qpos, qvel = task.start(layout)
    physics = PhysicsState(qpos, qvel, jnp.ones((3, 12)))
    state = task.begin(layout, jnp.array([5, 6, 498]), physics, KEY)
    nan = PhysicsState(*(x.at[1].set(jnp.nan) for x in physics))
    after, out = task.advance(state, nan, jnp.array([False, True, False]))
    assert out.reward[1] == -10.0 and out.costs[1].tolist() == [0.0]
    np.testing.assert_array_equal(out.observation[1], state.observation[1])
    assert out.truncated.tolist() == [False, True, False] and not out.terminated.any()
    assert after.clock.tolist() == [6, 7, 499] and np.isfinite(out.observation).all()
    _, out = task.advance(after, physics, jnp.zeros(3, bool))
    assert out.truncated.tolist() == [False, False, True]


def test_rotations_agree_with_each_other():
    yaw = jnp.array([0.3, 2.0, 5.0])
    np.testing.assert_allclose(rotation_of(2.0 * quaternion_about_z(yaw)), rotation_about_z(yaw), atol=1e-15)
    turn = rotation_of(jnp.array([0.5, 0.5, 0.5, 0.5]))  # 120° about (1, 1, 1): x to y to z
    np.testing.assert_allclose(turn, [[0, 0, 1], [1, 0, 0], [0, 1, 0]], atol=1e-15)
