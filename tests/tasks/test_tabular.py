"""Finite CMDPs: an optimum worked by hand, the linear programme by brute force, values by rollouts."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acpo.errors import UserError
from acpo.tasks.tabular import TabularCMDP, random_cmdp

# Two states, two actions, two steps. From state 0, "go" leads to state 1 and pays nothing; "stay"
# pays 1. In state 1 "go" pays 4 and costs 3, "stay" pays 2 and costs 1. State 1 keeps its player.
STAY, GO = 0, 1
TASK = TabularCMDP(
    transitions=[[[1, 0], [0, 1]], [[0, 1], [0, 1]]],
    reward=[[1, 0], [2, 4]],
    costs=[[[0, 0], [1, 3]]],
    initial=[1, 0],
    horizon=2,
)
# Deterministic plans from state 0:      return  cost
#   stay, stay                              2      0
#   stay, go                                1      0
#   go, then stay in 1                      2      1
#   go, then go in 1                        4      3
# Under a budget d ≤ 3 the best mix is of "stay, stay" and "go, go": 2 + (4 − 2)·d/3.


def test_the_optimum_by_hand():
    assert TASK.optimum().value == pytest.approx(4.0)
    np.testing.assert_allclose(TASK.optimum().costs, [3.0])
    for budget, value in ((3.0, 4.0), (1.5, 3.0), (0.6, 2.4), (0.0, 2.0), (9.0, 4.0)):
        best = TASK.optimum([budget])
        assert best.value == pytest.approx(value)
        assert best.costs[0] == pytest.approx(min(budget, 3.0))
    # With half of the budget the first action is tossed for, and what follows is settled.
    policy = TASK.optimum([1.5]).policy
    np.testing.assert_allclose(policy[0, 0], [0.5, 0.5], atol=1e-9)
    np.testing.assert_allclose(policy[1], [[1, 0], [0, 1]], atol=1e-9)
    assert TASK.optimum(minimise_cost=0).costs[0] == pytest.approx(0.0)


def test_a_policy_is_evaluated_by_hand():
    # First step: go with ¼. Second: in state 0 stay; in state 1 go with ½.
    #   return ¾·(1 + 1) + ¼·(0 + ½·2 + ½·4) = 1.5 + 0.75 = 2.25;  cost ¼·(½·1 + ½·3) = 0.5
    policy = np.array([[[0.75, 0.25], [0.5, 0.5]], [[1, 0], [0.5, 0.5]]])
    value, costs = TASK.evaluate(policy)
    assert value == pytest.approx(2.25)
    np.testing.assert_allclose(costs, [0.5])
    # Values at the first step: state 0 as above; state 1 mean of 2 and 4, twice.
    values, actions = TASK.values(policy, np.array([[1.0, 0], [2, 4]]))
    np.testing.assert_allclose(values[0], [2.25, 6.0])
    np.testing.assert_allclose(actions[0, 0], [1 + 1, 0 + 3])
    # Discounted by ½: ¾·(1 + ½·1) + ¼·½·3 = 1.125 + 0.375 = 1.5
    assert TASK.values(policy, np.array([[1.0, 0], [2, 4]]), 0.5)[0][0, 0] == pytest.approx(1.5)


def test_budgets_that_cannot_be_kept():
    # One state, one action of cost 1, three steps.
    task = TabularCMDP([[[1.0]]], [[1.0]], [[[1.0]]], [1.0], 3)
    assert task.optimum([3.0]).value == pytest.approx(3.0)
    with pytest.raises(UserError, match="No policy"):
        task.optimum([2.9])


def test_the_linear_programme_equals_mixtures_of_deterministic_policies():
    # Every deterministic policy of 2 states, 2 actions and 3 steps (2^6 of them); with one budget
    # the optimum mixes two of them.
    rng = np.random.default_rng(4)
    task = TabularCMDP(
        rng.dirichlet(np.ones(2), size=(2, 2)),
        rng.uniform(size=(2, 2)),
        rng.uniform(size=(1, 2, 2)),
        [0.3, 0.7],
        3,
    )
    points = []
    for choice in itertools.product((0, 1), repeat=6):
        value, costs = task.evaluate(np.eye(2)[np.array(choice).reshape(3, 2)])
        points.append((value, costs[0]))
    values, costs = np.array(points).T
    for budget in np.linspace(costs.min() + 0.01, costs.max(), 7):
        best = values[costs <= budget].max()
        for i, j in itertools.product(range(64), repeat=2):
            if costs[i] <= budget < costs[j]:
                share = (budget - costs[i]) / (costs[j] - costs[i])
                best = max(best, (1 - share) * values[i] + share * values[j])
        assert task.optimum([budget]).value == pytest.approx(best, abs=1e-6)


def test_exact_values_equal_rollouts():
    task, _ = random_cmdp(0, states=4, actions=3, costs=2, horizon=5)
    rng = np.random.default_rng(1)
    policy = rng.dirichlet(np.ones(3), size=(5, 4))
    value, costs = task.evaluate(policy)
    envs = 20_000
    table = jnp.log(jnp.asarray(policy, jnp.float32)).reshape(20, 3)

    def step(carry, key):
        state, observation = carry
        actions = jax.random.categorical(key, observation @ table)
        state, result = task.step(state, actions)
        return (state, result.observation), jnp.concatenate([result.reward[:, None], result.costs], axis=1)

    @jax.jit
    def sums(key):
        state, reset = task.reset(key, envs)
        _, signals = jax.lax.scan(step, (state, reset.observation), jax.random.split(key, 5))
        return signals.sum(axis=0)

    totals = np.asarray(sums(jax.random.PRNGKey(0)))
    error = totals.std(axis=0) / envs**0.5
    assert np.all(np.abs(totals.mean(axis=0) - [value, *costs]) < 4 * error)
    assert error.max() < 0.01


def test_an_episode_ends_and_starts_anew():
    state, reset = TASK.reset(jax.random.PRNGKey(0), 3)
    np.testing.assert_array_equal(reset.observation, np.eye(4)[[0, 0, 0]])
    np.testing.assert_array_equal(reset.elapsed, [0, 0, 0])
    state, first = TASK.step(state, jnp.array([STAY, GO, GO]))
    # One-hot of (step, state): step 1 begins at entry 2.
    np.testing.assert_array_equal(first.observation, np.eye(4)[[2, 3, 3]])
    np.testing.assert_array_equal(first.reward, [1, 0, 0])
    np.testing.assert_array_equal(first.terminated, [False] * 3)
    state, second = TASK.step(state, jnp.array([STAY, STAY, GO]))
    np.testing.assert_array_equal(second.reward, [1, 2, 4])
    np.testing.assert_array_equal(second.costs, [[0], [1], [3]])
    np.testing.assert_array_equal(second.terminated, [True] * 3)
    np.testing.assert_array_equal(second.truncated, [False] * 3)
    np.testing.assert_array_equal(second.observation, np.eye(4)[[0, 0, 0]])
    np.testing.assert_array_equal(state.step, [0, 0, 0])


def test_generated_instances_have_room_and_budgets_that_bind():
    for seed in range(2):
        task, budgets = random_cmdp(seed, costs=2)
        greedy = task.optimum()
        assert np.any(greedy.costs > budgets)
        best = task.optimum(budgets)
        assert best.value < greedy.value
        assert np.all(best.costs <= budgets + 1e-6)
        assert task.optimum(0.9 * budgets).value <= best.value


def test_without_costs_there_is_nothing_to_limit():
    task, budgets = random_cmdp(0, costs=0, states=2, horizon=2)
    assert budgets.shape == (0,)
    assert task.optimum(budgets).value == pytest.approx(task.optimum().value)
    assert task.optimum().costs.shape == (0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transitions": [[[1.0, 0.0]]]}, "transitions have shape"),
        ({"costs": [[1.0]]}, "costs have shape"),
        ({"initial": [0.5]}, "initial must be probabilities"),
        ({"transitions": [[[0.7]]]}, "transitions must be probabilities"),
    ],
)
def test_tables_that_do_not_fit_are_told_in_a_sentence(change, message):
    tables = {
        "transitions": [[[1.0]]],
        "reward": [[1.0]],
        "costs": [[[1.0]]],
        "initial": [1.0],
        "horizon": 2,
    }
    with pytest.raises(UserError, match=message):
        TabularCMDP(**(tables | change))
