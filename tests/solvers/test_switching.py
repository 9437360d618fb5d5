"""CRPO: which signal a step is for."""

import jax.numpy as jnp
import numpy as np
import pytest

from acpo.config import Config, replace
from acpo.problem import max_reward, min_cost
from acpo.solvers.switching import choose


@pytest.mark.parametrize(
    ("costs", "signal", "objective"),
    [
        # Budgets 25 and 5, tolerance 2. Neither is over by more than 2: the reward.
        ([27.0, 7.0], -1, [1, 0, 0]),
        # The first is 3 over: its cost is to fall.
        ([28.0, 5.0], 1, [0, -1, 0]),
        # 10 over 25 is 40 %, 3 over 5 is 60 %: the second is the worse.
        ([35.0, 8.0], 2, [0, 0, -1]),
        # 20 over 25 is 80 %: now the first.
        ([45.0, 8.0], 1, [0, -1, 0]),
    ],
)
def test_the_reward_while_limits_are_kept_else_the_worst_cost(costs, signal, objective):
    problem, chosen = choose(Config(), max_reward(jnp.array([25.0, 5.0])), jnp.array([1.0, *costs]))
    assert int(chosen) == signal
    np.testing.assert_array_equal(problem.objective(), objective)
    assert not np.any(np.asarray(problem.limited()))


def test_a_tolerance_in_units_of_the_budget():
    config = replace(Config(), {"switching.tolerance": 0.1, "switching.tolerance_unit": "budget"})
    # 10 % of 25 is 2.5.
    for cost, signal in ((27.4, -1), (27.6, 1)):
        assert int(choose(config, max_reward(jnp.array([25.0])), jnp.array([1.0, cost]))[1]) == signal


def test_a_broken_reward_limit_is_mended_by_raising_the_reward():
    problem = min_cost(jnp.array([True]), jnp.array(10.0), jnp.array([jnp.inf]), jnp.array(0.0))
    chosen, signal = choose(Config(), problem, jnp.array([7.0, 99.0]))
    assert int(signal) == 0
    np.testing.assert_array_equal(chosen.objective(), [1, 0])
    chosen, signal = choose(Config(), problem, jnp.array([9.0, 99.0]))
    assert int(signal) == -1
    np.testing.assert_array_equal(chosen.objective(), [0, -1])


def test_an_unlimited_cost_is_never_mended():
    _, signal = choose(Config(), max_reward(jnp.array([jnp.inf])), jnp.array([1.0, 1e9]))
    assert int(signal) == -1
