"""Pinned tests 21 to 27: the eight costs (spec 6), unscaled unless said."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quadruped_by_hand import EXACT, standing, up_at

from acpo.tasks.quadruped import costs
from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.native import Go1Native
from acpo.tasks.quadruped.reading import describe

CONFIG = Go1Config()
ROBOT = describe(CONFIG)
_raw_costs = jax.jit(costs.raw_costs, static_argnums=(0, 1))
LADDER = {0.8: 0.002339, 0.9: 0.07865, 1.0: 0.5, 1.1: 0.92135, 1.2: 0.997661}
SPEEDS = np.tile([27.09, 27.09, 18.054], 4)
TORQUES = np.tile([16.59, 16.59, 24.885], 4)


def raw(name, reading=None, action=0.0, last=0.0, config=CONFIG):
    """One cost of one robot."""
    full = jnp.full((1, 12), 0.0)
    values = _raw_costs(config, ROBOT, reading or standing(), full + action, full + last)
    return float(values[0, costs.COSTS.index(name)])


def test_names():
    assert costs.COSTS == (
        "ang_vel_xy",
        "lin_vel_z",
        "orientation",
        "torso_height",
        "joint_pos",
        "joint_vel",
        "joint_torque",
        "action_rate",
    )


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("ratio", "expected"), LADDER.items())
def test_pin_21_the_ladder_around_each_bound(ratio, expected, sign):
    c = sign * ratio
    measured = {
        "ang_vel_xy": raw("ang_vel_xy", standing(angular_velocity=[c, c, 0.0])),
        "lin_vel_z": raw("lin_vel_z", standing(linear_velocity=[0.0, 0.0, 0.4 * c])),
        "joint_vel": raw("joint_vel", standing(joint_velocity=c * SPEEDS)),
        "joint_torque": raw("joint_torque", standing(torque=c * TORQUES)),
        # 10 rad/s is 0.2 rad in a control step, which is an action of 0.8.
        "action_rate": raw("action_rate", action=0.8 * c),
    }
    for name, value in measured.items():
        assert value == pytest.approx(expected, abs=1e-5 if ratio in (0.9, 1.1) else 2e-6), name


def test_pin_22_components_of_the_angular_velocity():
    assert raw("ang_vel_xy", standing(angular_velocity=[1.0, 0, 0])) == pytest.approx(0.25, abs=1e-6)
    assert raw("ang_vel_xy", standing(angular_velocity=[1.0, -1, 0])) == pytest.approx(0.5, abs=1e-6)
    assert raw("ang_vel_xy", standing(angular_velocity=[1.2, 0, 0])) == pytest.approx(0.498831, abs=1e-6)


def test_pin_23_orientation():
    assert raw("orientation") < 1e-20
    assert raw("orientation", standing(up=up_at(roll=30))) == pytest.approx(1.155e-5, abs=1e-6)
    assert raw("orientation", standing(up=up_at(pitch=-45))) == pytest.approx(0.449134, abs=1e-5)


def test_pin_24_torso_height():
    for height, expected in {
        0.19: 0.827111,
        0.20: 0.5,
        0.21: 0.172889,
        0.22: 0.029673,
        0.25: 1.2e-6,
        0.284: 0,
        0.5: 0.5,
    }.items():
        assert raw("torso_height", standing(height=height)) == pytest.approx(expected, abs=2e-6)


def test_pin_25_joint_positions():
    assert raw("joint_pos") < 1e-12
    for calf in (-0.9845, -2.7215):
        pose = np.array(CONFIG.default_pose)
        pose[5] = calf
        assert raw("joint_pos", standing(joint_position=pose)) == pytest.approx(0.5 / 12, abs=1e-6)


def test_pin_26_action_rate():
    one = np.eye(12)[3]
    assert raw("action_rate", action=0.8 * one) == pytest.approx(0.5 / 12, abs=1e-6)
    assert raw("action_rate", action=one) == pytest.approx(0.083316, abs=1e-6)
    assert raw("action_rate", action=one, last=one) == 0


def test_pin_27_twenty_violating_steps_cost_two():
    speed = jnp.where(jnp.arange(1000) < 20, 2.0, 0.0)
    velocity = jnp.zeros((1000, 3)).at[:, 2].set(speed)
    episode_cost = (CONFIG.cost_scale * costs.lin_vel_z(CONFIG, velocity)).sum()
    assert float(episode_cost) == pytest.approx(2.0, abs=1e-6)


def test_pin_27_the_first_step_counts_from_action_zero():
    task = Go1Native(EXACT, 4, threads=1)
    task.reset(0)
    actions = np.full((4, 12), 0.8, np.float32)
    rates = [task.step(actions).costs[0, 7] for _ in range(2)]
    on_its_back = np.array([[0, 0, 0.3, 0, 1, 0, 0, *EXACT.default_pose]])
    task.physics.set_state(np.array([0]), on_its_back, np.zeros((1, 18)))
    assert task.step(actions).terminated[0]
    rates.append(task.step(actions).costs[0, 7])
    np.testing.assert_allclose(rates, [0.05, 0, 0.05], atol=1e-6)


def test_aggregates_and_readings_of_the_paper():
    reading = standing(angular_velocity=[1.0, 0, 0])
    assert raw("ang_vel_xy", reading, config=Go1Config(aggregate="max")) == pytest.approx(0.5, abs=1e-6)
    assert raw("ang_vel_xy", reading, config=Go1Config(aggregate="sum")) == pytest.approx(0.5, abs=1e-6)
    assert raw("ang_vel_xy", reading, config=Go1Config(ang_vel="norm")) == pytest.approx(0.5, abs=1e-6)
    bare = Go1Config(action_rate_units="raw")
    assert raw("action_rate", action=0.2, config=bare) == pytest.approx(0.5, abs=1e-6)
    unit = Go1Config(gravity_norm=1.0)
    assert raw("orientation", standing(up=up_at(roll=44.427)), config=unit) == pytest.approx(0.5, abs=1e-4)
