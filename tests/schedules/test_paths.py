"""Budgets that follow a path, and budgets that stand."""

import jax.numpy as jnp
import numpy as np
import pytest

from acpo.config import Config, replace
from acpo.schedules import curriculum, fixed

# One hundred iterations; the path ends after 50 of them.
CONFIG = replace(Config(), {"steps": 1000, "rollout.batch": 10, "rollout.envs": 10, "curriculum.end": 0.5})
DESIRED = jnp.array([10.0, 2.0])


def budgets(config: Config, iteration: int, first_cost=(0.0, 0.0)) -> np.ndarray:
    """The limits at an iteration of a run whose first measured costs are given."""
    state = curriculum.init(config, DESIRED, None)
    state, problem = curriculum.update(config, state, jnp.array([0.0, *first_cost]), None, jnp.int32(0))
    if iteration:
        # What is measured later is of no interest.
        later = jnp.array([0.0, 999.0, 999.0])
        state, problem = curriculum.update(config, state, later, None, jnp.int32(iteration))
    assert float(problem.reward_weight) == 1.0
    np.testing.assert_array_equal(state.budgets, problem.cost_limits)
    return np.asarray(problem.cost_limits)


@pytest.mark.parametrize(("iteration", "left"), [(0, 1.0), (10, 0.8), (25, 0.5), (50, 0.0), (99, 0.0)])
def test_a_line_from_twice_the_desired_budget(iteration, left):
    np.testing.assert_allclose(budgets(CONFIG, iteration), [10 + 10 * left, 2 + 2 * left], rtol=1e-5)


@pytest.mark.parametrize(
    # ½(1 + cos(π·progress/0.5)): at a third of the path ½ + ½·½ = 0.75.
    ("iteration", "left"),
    [(0, 1.0), (25, 0.5), (50, 0.0), (80, 0.0)],
)
def test_a_cosine_has_the_ends_and_the_middle_of_the_line(iteration, left):
    config = replace(CONFIG, {"curriculum.shape": "cosine"})
    np.testing.assert_allclose(budgets(config, iteration), [10 + 10 * left, 2 + 2 * left], rtol=1e-5)


def test_a_cosine_at_a_third_of_its_path():
    config = replace(CONFIG, {"curriculum.shape": "cosine", "curriculum.end": 0.9})
    # Iteration 30 of 100 is 0.3, a third of 0.9: 0.75 of the way is left.
    np.testing.assert_allclose(budgets(config, 30), [17.5, 3.5], rtol=1e-5)


def test_a_larger_first_cost_is_where_the_path_begins():
    # 50 > 20, but 1 < 4: starts at 50 and 4, halfway 30 and 3.
    np.testing.assert_allclose(budgets(CONFIG, 0, (50.0, 1.0)), [50.0, 4.0])
    np.testing.assert_allclose(budgets(CONFIG, 25, (50.0, 1.0)), [30.0, 3.0], rtol=1e-5)


@pytest.mark.parametrize(("iteration", "multiple"), [(0, 4.0), (10, 3.0), (20, 2.0), (60, 1.5), (99, 1.0125)])
def test_knots_are_joined_by_lines(iteration, multiple):
    config = replace(
        CONFIG, {"curriculum.shape": "knots", "curriculum.knots": ((0.0, 4.0), (0.2, 2.0), (1.0, 1.0))}
    )
    np.testing.assert_allclose(budgets(config, iteration), [10 * multiple, 2 * multiple], rtol=1e-5)


def test_the_path_reports_its_end():
    state = curriculum.init(CONFIG, DESIRED, None)
    for iteration, finished in ((0, False), (49, False), (50, True)):
        state, _ = curriculum.update(CONFIG, state, jnp.zeros(3), None, jnp.int32(iteration))
        assert bool(curriculum.report(state).finished) is finished


def test_fixed_budgets_never_move():
    state = fixed.SCHEDULE.init(CONFIG, DESIRED, None)
    for iteration in (0, 50):
        returns = jnp.array([0.0, 999.0, 999.0])
        state, problem = fixed.SCHEDULE.update(CONFIG, state, returns, None, jnp.int32(iteration))
        np.testing.assert_array_equal(problem.cost_limits, DESIRED)
        assert np.all(np.asarray(problem.limited()) == [False, True, True])


def test_unlimited_leaves_every_cost_free():
    state = fixed.UNLIMITED.init(CONFIG, DESIRED, None)
    _, problem = fixed.UNLIMITED.update(CONFIG, state, jnp.zeros(3), None, jnp.int32(0))
    assert not np.any(np.asarray(problem.limited()))
    assert float(problem.reward_weight) == 1.0
