"""A problem as arrays: what each of the three stages writes into them."""

import jax.numpy as jnp
import numpy as np

from acpo import problem as problems

BUDGETS = jnp.array([25.0, jnp.inf])
STAGES = (
    problems.max_reward(BUDGETS),
    problems.min_cost(jnp.array([True, False]), jnp.array(8.0), jnp.array([jnp.inf, 3.0]), jnp.array(0.5)),
    problems.projection(BUDGETS),
)
INF = np.inf


def row(*values) -> np.ndarray:
    return np.array(values)


def test_max_reward():
    stage = STAGES[problems.MAX_REWARD]
    np.testing.assert_array_equal(stage.objective(), [1, 0, 0])
    np.testing.assert_array_equal(stage.limited(), [False, True, False])
    # Returns of 10, 30 and 99: the first cost is 5 over its limit, everything else is free.
    np.testing.assert_array_equal(stage.slack(jnp.array([10.0, 30.0, 99.0])), [INF, -5, INF])
    np.testing.assert_array_equal(stage.scale(), [1, 25, 1])
    assert float(stage.anchor_weight) == 0


def test_min_cost():
    stage = STAGES[problems.MIN_COST]
    np.testing.assert_array_equal(stage.objective(), [0, -1, 0])
    np.testing.assert_array_equal(stage.limited(), [True, False, True])
    # A reward of 10 is 2 above its limit, the second cost 1 under its guard.
    np.testing.assert_array_equal(stage.slack(jnp.array([10.0, 30.0, 2.0])), [2, INF, 1])
    np.testing.assert_array_equal(stage.scale(), [8, 1, 3])


def test_projection():
    stage = STAGES[problems.PROJECTION]
    np.testing.assert_array_equal(stage.objective(), [0, 0, 0])
    np.testing.assert_array_equal(stage.limited(), [False, True, False])
    assert float(stage.anchor_weight) == 1


def test_the_scale_of_a_negative_reward_limit_is_its_size():
    stage = problems.min_cost(jnp.array([True]), jnp.array(-8.0), jnp.array([INF]), jnp.array(0.5))
    np.testing.assert_array_equal(stage.scale(), [8, 1])


def test_a_stage_is_chosen_by_data():
    for index, stage in enumerate(STAGES):
        chosen = problems.select(jnp.array(index), STAGES)
        for mine, expected in zip(chosen, stage, strict=True):
            np.testing.assert_array_equal(mine, expected)


def test_no_costs_leave_a_reward_alone():
    stage = problems.max_reward(jnp.zeros(0))
    np.testing.assert_array_equal(stage.objective(), [1])
    np.testing.assert_array_equal(stage.limited(), [False])
    np.testing.assert_array_equal(problems.direction(0), [1])
