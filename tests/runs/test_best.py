"""`best` is the highest smoothed reward among the feasible, on numbers chosen by hand."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from acpo.runs import best as keeping
from acpo.runs.best import WINDOW


def play(rewards, costs, desired, seeds=1):
    """The best after each iteration; the policy of iteration i is the number i."""

    def state(iteration):
        ones = jnp.ones(seeds)
        return SimpleNamespace(policy=iteration * ones, normaliser=-iteration * ones, iteration=ones)

    best = keeping.start(state(0), costs=np.shape(costs)[-1])
    history = []
    for i, (reward, cost) in enumerate(zip(rewards, costs, strict=True), start=1):
        measured = {
            "iteration": np.full(seeds, i),
            "reward": np.broadcast_to(np.float32(reward), seeds),
            "costs": np.broadcast_to(np.asarray(cost, np.float32), (seeds, np.shape(cost)[-1])),
        }
        best = keeping.update(best, state(i), measured, np.asarray(desired))
        history.append(best)
    return history


def test_before_anything_is_feasible_there_is_none():
    history = play([1.0] * 3, [[2.0]] * 3, [1.0])
    assert [int(b.iteration[0]) for b in history] == [0, 0, 0]
    assert history[-1].reward[0] == -np.inf
    assert float(history[-1].policy[0]) == 0


def test_the_mean_decides_not_one_measurement():
    """After ten iterations of 1, a 5 makes a mean of 1.4; a later 2 for long makes one of 2."""
    rewards = [1.0] * 10 + [5.0] + [0.0] * 10 + [2.0] * 10
    history = play(rewards, [[0.0]] * len(rewards), [1.0])
    assert history[10].reward[0] == pytest.approx(1.4)
    assert int(history[20].iteration[0]) == 11
    # One more each time: means 0.2, 0.4, … 2.0 at the end; 1.6 is the first above 1.4.
    assert [int(b.iteration[0]) for b in history[21:]] == [11] * 7 + [29, 30, 31]
    assert history[-1].reward[0] == pytest.approx(2.0)
    assert float(history[-1].policy[0]) == 31
    assert float(history[-1].normaliser[0]) == -31


def test_the_mean_of_the_costs_must_keep_every_budget():
    """Reward rises all along. Of ten costs, k are 8 and the others 4: a mean of 4 + 0.4 k, which
    breaks the budget of 5 from k = 3 on."""
    rewards = np.arange(1.0, 16.0)
    costs = [[0.0, 4.0]] * 10 + [[0.0, 8.0]] * 5
    history = play(rewards, costs, [1.0, 5.0])
    assert [int(b.iteration[0]) for b in history[9:]] == [10, 11, 12, 12, 12, 12]


def test_a_budget_met_exactly_is_kept():
    assert int(play([1.0], [[5.0]], [5.0])[0].iteration[0]) == 1


def test_a_lucky_start_gives_way_to_the_first_feasible_mean_over_the_window():
    rewards = [100.0] + [1.0] * 20
    history = play(rewards, [[0.0]] * 21, [1.0])
    assert [int(b.iteration[0]) for b in history[: WINDOW - 1]] == [1] * (WINDOW - 1)
    # The tenth mean, 10.9, still holds the first reward; those after it are lower.
    assert int(history[WINDOW - 1].iteration[0]) == WINDOW
    assert history[WINDOW - 1].reward[0] == pytest.approx(10.9)


def test_without_costs_or_limits_everything_is_feasible():
    assert int(play([1.0, 2.0], np.zeros((2, 0)), [])[-1].iteration[0]) == 2
    assert int(play([1.0, 2.0], [[1e9]] * 2, [np.inf])[-1].iteration[0]) == 2


def test_seeds_have_their_own():
    best = keeping.start(
        SimpleNamespace(policy=jnp.zeros((2, 3)), normaliser=None, iteration=np.zeros(2)), costs=1
    )
    for i, (rewards, costs) in enumerate([([1, 1], [0, 9]), ([2, 2], [9, 0])], start=1):
        acted = SimpleNamespace(policy=jnp.full((2, 3), i), normaliser=None)
        measured = {
            "iteration": np.full(2, i),
            "reward": np.array(rewards),
            "costs": np.array(costs)[:, None],
        }
        best = keeping.update(best, acted, measured, np.array([5.0]))
    # Seed 0 averages cost 4.5 at the second, seed 1 as well: both feasible, with reward 1.5.
    assert best.iteration.tolist() == [2, 2]
    assert best.reward.tolist() == [1.5, 1.5]
    acted = SimpleNamespace(policy=jnp.full((2, 3), 3), normaliser=None)
    measured = {"iteration": np.full(2, 3), "reward": np.array([9, 9]), "costs": np.array([[90.0], [0.0]])}
    best = keeping.update(best, acted, measured, np.array([5.0]))
    assert best.iteration.tolist() == [2, 3]
    assert np.asarray(best.policy)[:, 0].tolist() == [2, 3]
