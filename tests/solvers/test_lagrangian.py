"""Learned multipliers, step by step."""

import jax.numpy as jnp
import numpy as np
import pytest
from bandit import networks

from acpo.config import Config, replace
from acpo.solvers import lagrangian

BOTH = jnp.array([False, True, True])


def config(**fields) -> Config:
    return replace(Config(), {f"lagrangian.{name}": value for name, value in fields.items()})


def start(limited=BOTH, multipliers=None, **fields) -> lagrangian.LagrangianState:
    state = lagrangian.init(config(**fields), *networks(2))
    state = state._replace(limited=jnp.asarray(limited))
    return state if multipliers is None else state._replace(multipliers=jnp.array(multipliers, jnp.float32))


def learn(state, violation, **fields):
    return lagrangian.learn_multipliers(config(**fields), state, jnp.array(violation, jnp.float32))


def test_multipliers_start_small():
    np.testing.assert_allclose(start().multipliers, [0.001] * 3, rtol=1e-6)


def test_two_adam_steps_by_hand():
    # Violations 4 then −2 of the first cost; rate 0.035, β 0.9 and 0.999.
    #   step 1: m = 0.4, v = 0.016; m/0.1 = 4, v/0.001 = 16; λ = 0.001 + 0.035·4/4 = 0.036
    #   step 2: m = 0.36 − 0.2 = 0.16, v = 0.015984 + 0.004 = 0.019984;
    #           m/0.19 = 0.842105, v/0.001999 = 9.996998, root 3.161803;
    #           λ = 0.036 + 0.035·0.842105/3.161803 = 0.0453218
    # The second cost is under its limit from the start: 0.001 − 0.035 is cut at 0, then
    #   violations −1, −1: stays at 0.
    state = learn(start(), [0.0, 4.0, -1.0])
    np.testing.assert_allclose(state.multipliers, [0.001, 0.036, 0.0], rtol=1e-5)
    state = learn(state, [0.0, -2.0, -1.0])
    np.testing.assert_allclose(state.multipliers, [0.001, 0.0453218, 0.0], rtol=1e-4)


def test_multipliers_are_kept_under_their_maximum():
    state = learn(start(multipliers=[0, 0.99, 0.5]), [0.0, 5.0, 5.0], maximum=1.0)
    np.testing.assert_allclose(state.multipliers, [0, 1.0, 0.535], rtol=1e-5)


def test_multipliers_of_signals_without_a_limit_rest_with_their_moments():
    state = learn(start(limited=[False, True, False], multipliers=[2.0, 1.0, 3.0]), [9.0, 4.0, 9.0])
    np.testing.assert_allclose(state.multipliers, [2.0, 1.035, 3.0], rtol=1e-5)
    np.testing.assert_allclose(state.first_moment, [0, 0.4, 0], rtol=1e-5)
    np.testing.assert_allclose(state.second_moment, [0, 0.016, 0], rtol=1e-5)
    np.testing.assert_allclose(state.steps, [0, 1, 0])


def carry(state, limited, **fields) -> list[float]:
    new = lagrangian.carry_over(config(**fields), state, jnp.asarray(limited))
    np.testing.assert_array_equal(new.limited, limited)
    return np.asarray(new.multipliers).tolist()


TO_MIN_COST = [True, False, False]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        # The costs' largest multiplier was 4: the reward's becomes 1/4.
        ("rescale", [0.25, 4.0, 1.0]),
        ("hold", [7.0, 4.0, 1.0]),
        ("reset", [0.001, 4.0, 1.0]),
    ],
)
def test_into_the_min_cost_stage(mode, expected):
    state = start(multipliers=[7.0, 4.0, 1.0])
    np.testing.assert_allclose(carry(state, TO_MIN_COST, on_stage_change=mode), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        # The reward's multiplier became 0.5, so the costs' trade-off is 2: 4 and 1 keep their ratio.
        ("rescale", [0.5, 2.0, 0.5]),
        ("hold", [0.5, 4.0, 1.0]),
        ("reset", [0.5, 0.001, 0.001]),
    ],
)
def test_back_into_the_max_reward_stage(mode, expected):
    state = start(limited=TO_MIN_COST, multipliers=[0.5, 4.0, 1.0])
    np.testing.assert_allclose(carry(state, BOTH, on_stage_change=mode), expected, rtol=1e-5)


def test_a_vanishing_multiplier_is_rescaled_to_a_finite_one():
    assert carry(start(multipliers=[0, 0, 0]), TO_MIN_COST)[0] == pytest.approx(1000)
    state = start(limited=TO_MIN_COST, multipliers=[0, 0.0, 0.0])
    assert np.all(np.isfinite(carry(state, BOTH)))


@pytest.mark.parametrize("mode", ["rescale", "hold", "reset"])
def test_the_same_limits_leave_multipliers_alone(mode):
    state = start(multipliers=[7.0, 4.0, 1.0])
    assert carry(state, BOTH, on_stage_change=mode) == [7.0, 4.0, 1.0]


@pytest.mark.parametrize("mode", ["rescale", "reset"])
def test_the_first_problem_of_all_starts_from_the_initial_values(mode):
    state = start(limited=[False, False, False])
    np.testing.assert_allclose(carry(state, BOTH, on_stage_change=mode), [0.001] * 3, rtol=1e-6)
