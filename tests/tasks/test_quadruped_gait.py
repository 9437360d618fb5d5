"""Pinned tests 10 to 12: the gait clock (spec 4)."""

import jax.numpy as jnp
import numpy as np

from acpo.tasks.quadruped import gait
from acpo.tasks.quadruped.config import Go1Config

CONFIG = Go1Config()


def test_pin_10_desired_contact():
    thetas = jnp.asarray([[0, 0.05, 0.10, 0.25], [0.50, 0.75, 0.95, 0.0]])
    expected = [[0.5, 0.762475, 0.923436, 0.999645], [0.5, 0.000355, 0.237525, 0.5]]
    np.testing.assert_allclose(gait.desired_contact(CONFIG, thetas), expected, atol=1e-6)
    start = jnp.linspace(0, 1, 257)
    contact = gait.desired_contact(CONFIG, gait.clock(CONFIG, start, jnp.zeros(257, jnp.int32)))
    np.testing.assert_allclose((1 - contact).sum(axis=1), 2, atol=1e-3)


def test_pin_11_the_clock():
    def at(steps):
        return gait.clock(CONFIG, jnp.zeros(1), jnp.asarray([steps]))[0]

    np.testing.assert_allclose(at(0), [0, 0.5, 0.5, 0], atol=1e-6)
    np.testing.assert_allclose(at(5), [0.25, 0.75, 0.75, 0.25], atol=1e-6)
    for cycles in range(1, 51):
        np.testing.assert_allclose(at(20 * cycles), [0, 0.5, 0.5, 0], atol=1e-6)


def test_the_clock_starts_where_it_is_told_at_any_elapsed_time():
    elapsed = jnp.asarray([0, 7, 999])
    start = gait.start_at(CONFIG, jnp.asarray([0.3, 0.3, 0.3]), elapsed)
    np.testing.assert_allclose(gait.clock(CONFIG, start, elapsed)[:, 0], 0.3, atol=1e-5)


def test_pin_12_desired_height():
    stance = gait.desired_height(CONFIG, jnp.linspace(0, 0.5, 100).reshape(-1, 4))
    np.testing.assert_allclose(stance, 0.02, atol=1e-6)
    swing = gait.desired_height(CONFIG, jnp.asarray([[0.75, 0.625, 0.875, 0.0]]))
    np.testing.assert_allclose(swing, [[0.08, 0.05, 0.05, 0.02]], atol=1e-6)


def test_another_duty_moves_the_switch():
    config = Go1Config(duty=0.6)
    contact = gait.desired_contact(config, jnp.asarray([[0.0, 0.3, 0.6, 0.8]]))
    np.testing.assert_allclose(contact, [[0.5, 0.999645, 0.5, 0.000355]], atol=1e-6)


def test_stand_still_asks_all_feet_to_stand_at_zero_command():
    config = Go1Config(stand_still=True)
    phases = jnp.tile(jnp.asarray([[0.25, 0.75, 0.75, 0.25]]), (2, 1))
    contact = gait.schedule(config, phases, jnp.asarray([[0, 0, 0], [0.5, 0, 0]]))
    np.testing.assert_allclose(contact[0], 1)
    assert contact[1, 1] < 0.01
