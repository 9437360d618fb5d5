"""Pinned tests 16 to 20: the reward (spec 5)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quadruped_by_hand import EXACT, TROT, standing

from acpo.tasks.quadruped import gait, rewards
from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.native import Go1Native
from acpo.tasks.quadruped.rules import reported_return

CONFIG = Go1Config()
_terms = jax.jit(rewards.terms, static_argnums=0)


def terms(reading, phases=TROT, command=(0.0, 0.0, 0.0)):
    return _terms(CONFIG, reading, jnp.asarray([phases]), jnp.asarray([command]))


def test_pin_16_a_perfect_step_pays_for_the_smoothing_only():
    reading = standing(
        linear_velocity=[0.5, 0.1, 0.0],
        angular_velocity=[0.0, 0.0, 0.3],
        foot_height=[0.02, 0.08, 0.08, 0.02],
        foot_force=[62.5, 0.0, 0.0, 62.5],
    )
    reward = rewards.total(CONFIG, terms(reading, command=(0.5, 0.1, 0.3)))[0]
    np.testing.assert_allclose(reward, 1.5 - 0.00071, atol=1e-5)


@pytest.mark.parametrize("start", [0.0, 0.1, 0.25, 0.77])
def test_pin_17_four_loaded_feet(start):
    phases = (start, (start + 0.5) % 1, (start + 0.5) % 1, start)
    reward = -terms(standing(), phases).foot_force[0]
    np.testing.assert_allclose(reward, -1.99989, atol=1e-3 if start == 0.1 else 1e-4)


def test_pin_17_feet_that_do_not_swing():
    np.testing.assert_allclose(-terms(standing(), TROT).clearance[0], -0.20467, atol=1e-5)
    np.testing.assert_allclose(-terms(standing(), (0, 0.5, 0.5, 0)).clearance[0], 0, atol=1e-6)


def test_pin_18_tracking():
    reading = standing(linear_velocity=[0.3, 0.4, 7.0], angular_velocity=[3.0, 3.0, 0.5])
    values = terms(reading)
    np.testing.assert_allclose(values.linear_tracking[0], np.exp(-1), atol=1e-6)
    turning = rewards.total(CONFIG, values) - rewards.total(
        CONFIG, values._replace(angular_tracking=jnp.zeros(1))
    )
    np.testing.assert_allclose(turning[0], 0.5 * np.exp(-1), atol=1e-6)


def test_pin_19_the_smoothing_costs_a_perfect_trot_a_quarter():
    start = (jnp.arange(2000) + 0.5) / 2000
    phases = gait.clock(CONFIG, start, jnp.zeros(2000, jnp.int32))
    force = jnp.where(phases < 0.5, 1000.0, 0.0)
    paid = rewards.foot_force(force, gait.desired_contact(CONFIG, phases), CONFIG.foot_force_sigma)
    np.testing.assert_allclose(-paid.mean(), -0.2236, atol=5e-4)


def test_pin_20_standing_still_for_an_episode():
    task = Go1Native(EXACT, 4, threads=2)
    task.reset(0)
    total, costs = np.zeros(4), np.zeros((4, 8))
    for step in range(1, 1001):
        if step in (1, 501):
            task.set_commands(np.array([[0.5, 0, 0], [0, 0, 0]] * 2))
        result = task.step(np.zeros((4, 12), np.float32))
        total += result.reward
        costs += result.costs
        assert (result.truncated == (step == 1000)).all() and not result.terminated.any()
    mean = task.reported_return(total, np.full(4, 1000))
    assert abs(mean[0] + 1.2195) < 0.02
    assert abs(mean[1] + 0.5874) < 0.02
    assert costs.max() < 1e-3


def test_collisions_and_foot_motion_are_charged():
    reading = standing(
        link_touch=np.arange(13) < 5, foot_velocity=[[1.0, 0, 0], [9, 9, 9], [9, 9, 9], [0, 0, 0]]
    )
    values = terms(reading)
    assert values.collision[0] == 5
    moved = 0.999645 * (1 - np.exp(-0.1)) + 2 * 0.000355
    np.testing.assert_allclose(values.foot_velocity[0], moved, atol=1e-5)


def test_the_learners_reward_and_the_reported_one_agree():
    per_step = np.random.default_rng(0).normal(size=400)
    learner = np.asarray(rewards.learner_reward(CONFIG, jnp.asarray(per_step)))
    np.testing.assert_allclose(learner, 0.02 * (per_step + 2), atol=1e-6)
    np.testing.assert_allclose(
        reported_return(CONFIG, learner.sum(), np.asarray(400)), per_step.sum() / 1000, atol=1e-5
    )
