"""Measured returns: which episodes count, with which weight. One row of signals per step, by hand."""

import jax.numpy as jnp
import numpy as np

from acpo.learning import episodes

HORIZON = 4


def signals(*rows: list[float]) -> jnp.ndarray:
    """[T, B, 2]: a reward for each environment, and a cost of ten times as much."""
    reward = jnp.array(rows)
    return jnp.stack([reward, 10 * reward], axis=-1)


def flags(*rows: list[int]) -> jnp.ndarray:
    return jnp.array(rows, bool)


NEVER = flags([0, 0], [0, 0], [0, 0], [0, 0])


def start(elapsed=(0, 0), window: int = 0) -> episodes.EpisodeState:
    return episodes.init(jnp.array(elapsed), 2, window)


def test_an_episode_cut_by_a_clock_that_started_late_counts_in_part():
    # Environment 0 began with 2 of 4 steps on the clock, so its time-out comes after two steps with
    # a reward of 1 + 2 = 3 and a weight of 2/4. Environment 1 terminates after three steps with
    # 10 + 20 + 30 = 60 and a weight of 1. Returns (3 + 60)/1.5 = 42, length (2 + 3)/1.5 = 10/3.
    state, ended = episodes.count(
        start(elapsed=(2, 0)),
        signals([1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 5.0]),
        flags([0, 0], [0, 0], [0, 1], [0, 0]),
        flags([0, 0], [1, 0], [0, 0], [0, 0]),
        HORIZON,
    )
    assert int(ended) == 2
    np.testing.assert_allclose(state.returns, [42.0, 420.0], rtol=1e-6)
    np.testing.assert_allclose(state.length, 10 / 3, rtol=1e-6)
    # What goes on: environment 0 has 3 + 4 over two steps, environment 1 has 5 over one; the phases
    # are spent.
    np.testing.assert_allclose(state.sums[:, 0], [7.0, 5.0])
    np.testing.assert_allclose(state.steps, [2.0, 1.0])
    np.testing.assert_allclose(state.elapsed, [0.0, 0.0])

    # Two more steps end environment 0 by its clock: 7 + 1 + 1 = 9 over four steps, now whole.
    state, ended = episodes.count(
        state,
        signals([1.0, 1.0], [1.0, 1.0]),
        flags([0, 0], [0, 0]),
        flags([0, 0], [1, 0]),
        HORIZON,
    )
    assert int(ended) == 1
    np.testing.assert_allclose(state.returns, [9.0, 90.0], rtol=1e-6)
    np.testing.assert_allclose(state.length, 4.0)


def test_a_constant_reward_is_measured_without_bias_from_any_phase():
    # Reward 1 a step for ever: whatever the phases, an episode is worth 4.
    state, _ = episodes.count(
        start(elapsed=(3, 1)),
        jnp.ones((4, 2, 2)),
        NEVER,
        flags([1, 0], [0, 0], [0, 1], [0, 0]),
        HORIZON,
    )
    np.testing.assert_allclose(state.returns, [4.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(state.length, 4.0, rtol=1e-6)


def test_before_any_episode_has_ended_the_mean_step_stands_for_the_whole():
    # Rewards 1, 2, 3, 6 over two environments and two steps: mean 3, times a horizon of 4 = 12.
    rows = signals([1.0, 2.0], [3.0, 6.0])
    state, ended = episodes.count(start(), rows, NEVER[:2], NEVER[:2], HORIZON)
    assert int(ended) == 0
    np.testing.assert_allclose(state.returns, [12.0, 120.0], rtol=1e-6)
    assert float(state.length) == HORIZON
    assert not bool(state.known)
    # Still nothing: the estimate is made from the new batch alone, not from the old guess.
    state, _ = episodes.count(state, jnp.ones((1, 2, 2)), NEVER[:1], NEVER[:1], HORIZON)
    np.testing.assert_allclose(state.returns, [4.0, 4.0], rtol=1e-6)
    # Environment 0 ends after four steps with 1 + 3 + 1 + 1 = 6 (costs 10 + 30 + 1 + 1 = 42).
    state, _ = episodes.count(state, jnp.ones((1, 2, 2)), NEVER[:1], flags([1, 0]), HORIZON)
    np.testing.assert_allclose(state.returns, [6.0, 42.0], rtol=1e-6)
    # A batch without an end keeps that.
    state, ended = episodes.count(state, 100 * jnp.ones((1, 2, 2)), NEVER[:1], NEVER[:1], HORIZON)
    assert int(ended) == 0
    np.testing.assert_allclose(state.returns, [6.0, 42.0], rtol=1e-6)
    assert float(state.length) == 4.0


def test_a_window_remembers_the_last_episodes_in_order_of_their_ends():
    # One-step episodes of 1, 2, 3 and 4: a window of three keeps 2, 3, 4 → 3.
    once = flags([1])
    state = episodes.init(jnp.array([0]), 2, 3)
    for reward in (1.0, 2.0, 3.0, 4.0):
        state, _ = episodes.count(state, signals([reward]), once, flags([0]), HORIZON)
    np.testing.assert_allclose(state.window_sums[:, 0], [2.0, 3.0, 4.0])
    np.testing.assert_allclose(state.returns, [3.0, 30.0], rtol=1e-6)
    # A batch without an end changes nothing; one more end pushes the 2 out: (3 + 4 + 8)/3 = 5.
    state, _ = episodes.count(state, signals([8.0]), flags([0]), flags([0]), HORIZON)
    np.testing.assert_allclose(state.returns, [3.0, 30.0], rtol=1e-6)
    state, _ = episodes.count(state, signals([0.0]), once, flags([0]), HORIZON)
    np.testing.assert_allclose(state.returns, [5.0, 50.0], rtol=1e-6)


def test_a_window_that_is_not_full_counts_only_what_it_has():
    state, _ = episodes.count(
        episodes.init(jnp.array([0]), 2, 50), signals([6.0]), flags([1]), flags([0]), HORIZON
    )
    np.testing.assert_allclose(state.returns, [6.0, 60.0], rtol=1e-6)


def test_more_ends_in_a_batch_than_the_window_holds():
    # Ends, in order of time: 1, 2 (step 0), 3, 4 (step 1). The last two: (3 + 4)/2 = 3.5.
    state, ended = episodes.count(
        start(window=2),
        signals([1.0, 2.0], [3.0, 4.0]),
        flags([1, 1], [1, 1]),
        NEVER[:2],
        HORIZON,
    )
    assert int(ended) == 4
    np.testing.assert_allclose(state.returns, [3.5, 35.0], rtol=1e-6)


def test_returns_by_step_are_of_this_batch_only():
    # One environment whose episodes last 4: six steps of 1, then a batch of two steps of 5 in which
    # the second episode ends. By episodes 1 + 1 + 5 + 5 = 12; by step 5 · 4 = 20.
    for per_step, worth in ((False, 12.0), (True, 20.0)):
        state, _ = episodes.count(
            episodes.init(jnp.array([0]), 2, 0),
            signals(*[[1.0]] * 6),
            flags(*[[0]] * 6),
            flags([0], [0], [0], [1], [0], [0]),
            HORIZON,
            per_step,
        )
        np.testing.assert_allclose(state.returns, [4.0, 40.0], rtol=1e-6)
        state, _ = episodes.count(
            state, signals([5.0], [5.0]), flags([0], [0]), flags([0], [1]), HORIZON, per_step
        )
        np.testing.assert_allclose(state.returns, [worth, 10 * worth], rtol=1e-6)


def test_returns_by_step_count_early_ends():
    # Steps of 3 in episodes that terminate after two: an episode is worth 6, not 3 · 4.
    state, _ = episodes.count(
        start(), 3 * jnp.ones((4, 2, 2)), flags([0, 0], [1, 1], [0, 0], [1, 1]), NEVER, HORIZON, True
    )
    np.testing.assert_allclose(state.returns, [6.0, 6.0], rtol=1e-6)
