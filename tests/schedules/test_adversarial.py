"""Algorithm 3, branch by branch, on queues and states written by hand.

Returns are rows (reward, cost, …). The desired budget is 10 unless said, stages are 3 (max-reward)
and 2 (min-cost) updates long, queues 4 long.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acpo.config import Config, replace
from acpo.problem import MAX_REWARD, MIN_COST, PROJECTION
from acpo.schedules import adversarial

SHORT = replace(
    Config(),
    {
        "adversarial.explore": 2,
        "adversarial.max_reward": 3,
        "adversarial.min_cost": 2,
        "adversarial.projection": 4,
        "adversarial.window": 4,
        "adversarial.finish": 0.01,
        "adversarial.margin": 0.0,
        "adversarial.lowered": 0.5,
        "adversarial.raised": 1.5,
        "adversarial.patience": 0.0,
        "adversarial.deadline": 0.0,
        "adversarial.settle": 0.0,
    },
)
# What the paper's text says where it differs from the defaults.
PAPER = replace(
    SHORT,
    {
        "adversarial.convergence": "queue",
        "adversarial.guard_satisfied": False,
        "adversarial.skip_satisfied": False,
        "adversarial.monotone": False,
        "adversarial.reward_slack": 0.0,
        "adversarial.initial_measured": False,
        "adversarial.lowered": 0.0,
        "adversarial.raised": float("inf"),
    },
)
LATE = 100
"""An iteration after the exploration."""


@functools.partial(jax.jit, static_argnums=0)
def jitted(config, state, returns, policy, iteration):
    return adversarial.update(config, state, returns, policy, iteration)


def update(state, returns, iteration=LATE, config=SHORT, policy=0.0):
    """One update; `policy` is any number here, so that anchors can be told apart."""
    return jitted(config, state, jnp.asarray(returns, jnp.float32), jnp.float32(policy), jnp.int32(iteration))


def fresh(desired=(10.0,), config=SHORT):
    return adversarial.init(config, jnp.array(desired, jnp.float32), jnp.float32(0))


def state_of(budget=(10.0,), config=SHORT, **fields):
    """A state in which everything but the fields given is at its start."""
    like = fresh(budget, config)
    return like._replace(
        **{name: jnp.asarray(value, getattr(like, name).dtype) for name, value in fields.items()}
    )


def run(rows, state=None, first=0, config=SHORT):
    """States and problems of consecutive iterations."""
    state = fresh(config=config) if state is None else state
    seen = []
    for offset, row in enumerate(rows):
        state, problem = update(state, row, first + offset, config, policy=first + offset)
        seen.append((state, problem))
    return seen


def stages(seen) -> list[int]:
    return [int(state.stage) for state, _ in seen]


def one(array) -> float:
    return float(np.asarray(array).reshape(-1)[0])


# Exploring and the lengths of stages.


def test_exploration_maximises_reward_under_the_first_budget():
    for state, problem in run([(1.0, 30.0), (2.0, 12.0)]):
        # d⁰ is the larger of 2·10 and the first measured 30; later measurements do not move it.
        assert int(state.stage) == MAX_REWARD
        assert one(problem.cost_limits) == 30.0
        assert float(problem.reward_weight) == 1.0
        assert one(problem.cost_weights) == 0.0
        assert float(problem.reward_limit) == -np.inf
        assert float(problem.anchor_weight) == 0.0


def test_a_small_first_cost_leaves_twice_the_desired_budget():
    assert one(run([(1.0, 3.0)])[0][1].cost_limits) == 20.0


def test_stage_lengths_are_counted_in_updates():
    # Two explore (0, 1), three max-reward (2, 3, 4), two min-cost (5, 6), three max-reward (7, 8, 9).
    rows = [(float(i), 15.0 - i / 2) for i in range(11)]
    assert stages(run(rows)) == [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1]


def test_the_reward_budget_is_the_mean_of_the_stage_that_ended():
    # Updates 2, 3, 4 are max-reward; the policies they made are measured at 3, 4, 5 with 4, 6, 8.
    # g = 6, the deviation of one measurement is √(4 + 0 + 4)/3 = √(8/3) = 1.632993.
    rows = [(100.0, 15.0)] * 3 + [(4.0, 15.0), (6.0, 15.0), (8.0, 15.0)]
    state, problem = run(rows)[-1]
    assert int(state.stage) == MIN_COST
    np.testing.assert_allclose(state.reward_budget, 6.0, rtol=1e-6)
    np.testing.assert_allclose(state.reward_noise, 1.632993, rtol=1e-5)
    np.testing.assert_allclose(problem.reward_limit, 6.0 - 1.632993, rtol=1e-5)


def test_without_exploration_no_measurement_is_counted_twice():
    # A constant return must be its own mean, whatever the length of the exploration.
    config = replace(SHORT, {"adversarial.explore": 0})
    seen = run([(7.0, 15.0)] * 4, config=config)
    assert stages(seen) == [0, 0, 0, 1]
    np.testing.assert_allclose(seen[-1][0].reward_budget, 7.0, rtol=1e-6)
    np.testing.assert_allclose(seen[-1][0].reward_noise, 0.0, atol=1e-3)


def test_budgets_come_down_by_the_deadline():
    # 1000 iterations, a deadline after 200. d⁰ is 30, the first cost; d_des is 10.
    config = replace(SHORT, {"adversarial.deadline": 0.2, "rollout.batch": 100, "steps": 100_000})
    state, _ = update(fresh(config=config), [1.0, 30.0], iteration=0, config=config)
    # After 50 of them 30 − 20/4 = 25, in whatever stage; after 200 and more d_des.
    for iteration, budget in [(50, 25.0), (100, 20.0), (200, 10.0), (900, 10.0)]:
        state, _ = update(state, [1.0, 30.0], iteration=iteration, config=config)
        np.testing.assert_allclose(state.budgets, [budget], rtol=1e-6)
    # What stages have lowered further is not raised, and what events have steered is left alone.
    low = state_of(budgets=[12.0], start=[30.0], config=config)
    np.testing.assert_allclose(update(low, [1.0, 11.0], 50, config)[0].budgets, [12.0])
    steered = state_of(budgets=[12.0], start=[30.0], events=1, config=config)
    np.testing.assert_allclose(update(steered, [1.0, 11.0], 900, config)[0].budgets, [12.0])


# 1000 iterations, patience for 200. d⁰ is 30 and d_des 10: after 50 of them 25 is wanted, after 150 15.
PATIENT = replace(SHORT, {"adversarial.patience": 0.2, "rollout.batch": 100, "steps": 100_000})


@pytest.mark.parametrize(
    ("iteration", "stage"),
    [(50, MAX_REWARD), (150, MIN_COST), (500, MIN_COST)],
)
def test_min_cost_is_skipped_for_what_is_within_the_patience(iteration, stage):
    # Costs 18, 18 and 18.
    before = ending_max_reward(3.0, 5.0, [36.0], start=[30.0], budgets=[30.0])
    state, _ = update(before, [3.0, 18.0], iteration, PATIENT)
    assert int(state.stage) == stage
    assert int(state.cycles) == (stage == MAX_REWARD)


@pytest.mark.parametrize(("iteration", "expected"), [(50, 25.0), (150, 15.0), (500, 12.0)])
def test_min_cost_goes_no_further_than_the_patience(iteration, expected):
    # Costs 13 and 11, mean 12: below 15 the stage had nothing to do any more.
    before = state_of(
        stage=MIN_COST, stage_length=2, stage_mean=[5.0, 13.0], start=[30.0], budgets=[30.0], config=PATIENT
    )
    state, _ = update(before, [5.0, 11.0], iteration, PATIENT)
    assert int(state.stage) == MAX_REWARD
    np.testing.assert_allclose(state.budgets, [expected], rtol=1e-6)


def test_an_early_event_lowers_budgets_no_further_than_the_patience():
    # Mean cost 20 in the queue: 20 + (10 − 20) = 10, but 15 is what is wanted after 150 iterations.
    before = converging(20.0, start=[30.0])
    state, _ = update(before, [6.0, 20.0], 150, PATIENT)
    assert int(state.events) == 1
    np.testing.assert_allclose(state.budgets, [15.0], rtol=1e-6)


# The end of max-reward.


def ending_max_reward(reward_sum, square, cost_sums, desired=(10.0,), **fields):
    """Two of three measurements are in: with the next one the stage is over."""
    return state_of(
        desired,
        stage=MAX_REWARD,
        stage_length=3,
        stage_mean=[reward_sum / 2, *(total / 2 for total in cost_sums)],
        stage_scatter=[square - reward_sum**2 / 2, *(0.0 for _ in cost_sums)],
        **fields,
    )


def test_min_cost_minimises_the_violated_cost_above_the_reward_limit():
    # Rewards 1, 2 and 3: g = 2, deviation √(14/3 − 4) = 0.816497. Costs 11, 12, 16: mean 13 > 10.
    state, problem = update(ending_max_reward(3.0, 5.0, [23.0]), [3.0, 16.0])
    assert int(state.stage) == MIN_COST
    assert float(problem.reward_weight) == 0.0
    assert one(problem.cost_weights) == 1.0
    assert one(problem.cost_limits) == np.inf
    np.testing.assert_allclose(problem.reward_limit, 2 - 0.816497, rtol=1e-5)
    assert one(state.budgets) == 20.0


def test_the_reward_slack_of_zero_is_the_papers_limit():
    _, problem = update(ending_max_reward(3.0, 5.0, [23.0]), [3.0, 16.0], config=PAPER)
    np.testing.assert_allclose(problem.reward_limit, 2.0, rtol=1e-6)


@pytest.mark.parametrize(("iteration", "stage"), [(749, MIN_COST), (750, PROJECTION)])
def test_the_last_part_of_training_steers_after_every_max_reward(iteration, stage):
    # 1000 iterations, a quarter of them to settle. Costs 11, 12, 16 are over 10.
    config = replace(SHORT, {"adversarial.settle": 0.25, "rollout.batch": 100, "steps": 100_000})
    before = ending_max_reward(3.0, 5.0, [23.0], queue=[[0, 0]] + [[2.0, 11.5]] * 3, queue_filled=2)
    state, _ = update(before, [3.0, 16.0], iteration, config)
    assert int(state.stage) == stage
    # The cycle is over and steers the budget, the first though it is. The queue's 11.5, 11.5 and 16 have
    # a mean of 13 with a standard error of √13.5/3, so 1 − (1.5/9) of 3 is believed: 20 − 2.5.
    assert int(state.events) == (stage == PROJECTION)
    assert one(state.budgets) == pytest.approx(17.5 if stage == PROJECTION else 20.0, rel=1e-5)


def test_min_cost_is_skipped_when_nothing_is_violated():
    # Costs 9, 9 and 9: the next stage is max-reward again, and budgets stay. The cycle is complete.
    state, problem = update(ending_max_reward(3.0, 5.0, [18.0]), [3.0, 9.0])
    assert int(state.stage) == MAX_REWARD
    assert int(state.stage_length) == 1
    assert int(state.cycles) == 1
    np.testing.assert_allclose(state.cycle, [2.0, 9.0], rtol=1e-6)
    assert one(state.budgets) == 20.0
    assert float(problem.reward_weight) == 1.0


def test_the_paper_does_not_skip():
    state, problem = update(ending_max_reward(3.0, 5.0, [18.0]), [3.0, 9.0], config=PAPER)
    assert int(state.stage) == MIN_COST
    assert one(problem.cost_weights) == 1.0


def test_min_cost_with_three_costs_guards_the_satisfied_one():
    # Means 13, 9 and 12 against 10, 10 and 12: only the first is over; a mean at its budget is not.
    state = ending_max_reward(3.0, 5.0, [26.0, 18.0, 24.0], desired=(10.0, 10.0, 12.0))
    _, problem = update(state, [3.0, 13.0, 9.0, 12.0])
    np.testing.assert_array_equal(problem.cost_weights, [1, 0, 0])
    np.testing.assert_array_equal(problem.cost_limits, [np.inf, 10, 12])
    # The paper guards none, and without skipping minimises all.
    _, problem = update(state, [3.0, 13.0, 9.0, 12.0], config=PAPER)
    np.testing.assert_array_equal(problem.cost_weights, [1, 1, 1])
    np.testing.assert_array_equal(problem.cost_limits, [np.inf] * 3)


def test_no_costs_at_all_never_reach_min_cost():
    seen = run([(1.0 + i,) for i in range(9)], state=fresh(()))
    assert stages(seen) == [MAX_REWARD] * 9


# The end of min-cost.


def ending_min_cost(cost_sum, **fields):
    """One of two measurements is in: with the next one the stage is over."""
    return state_of(stage=MIN_COST, stage_length=2, stage_mean=[5.0, cost_sum], reward_budget=6.0, **fields)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        # The mean of 14 and `measured`; d = min(20, max(mean, 10)).
        (16.0, 15.0),  # lowered to 15
        (2.0, 10.0),  # 8 would undercut the desired budget
        (40.0, 20.0),  # 27 would raise it
    ],
)
def test_budgets_after_min_cost_never_rise_and_never_undercut_the_desired(measured, expected):
    state, problem = update(ending_min_cost(14.0), [5.0, measured])
    assert int(state.stage) == MAX_REWARD
    assert one(state.budgets) == one(problem.cost_limits) == expected


@pytest.mark.parametrize(("measured", "expected"), [(16.0, 15.0), (2.0, 8.0), (40.0, 27.0)])
def test_the_papers_budget_after_min_cost_is_the_bare_mean(measured, expected):
    state, _ = update(ending_min_cost(14.0), [5.0, measured], config=PAPER)
    assert one(state.budgets) == expected


def test_min_cost_ends_when_nothing_is_over_the_desired_budget():
    # Of its two updates one is made; its cost is 9.5 (the paper's stage goes on).
    before = state_of(stage=MIN_COST, stage_length=1, budgets=[14.0], reward_budget=5.0)
    for config, cost, stage in [
        (SHORT, 9.5, MAX_REWARD),
        (SHORT, 10.5, MIN_COST),
        (PAPER, 9.5, MIN_COST),
    ]:
        state, _ = update(before, [5.0, cost], config=config)
        assert int(state.stage) == stage
        assert one(state.budgets) == (10.0 if stage == MAX_REWARD else 14.0)
    # Not before it has made one: the measurement at its beginning is of the stage before.
    fresh_stage = state_of(stage=MIN_COST, stage_length=0, budgets=[14.0])
    assert int(update(fresh_stage, [5.0, 9.5])[0].stage) == MIN_COST


def test_a_cycle_remembers_the_reward_budget_and_the_cost_after_min_cost():
    state, _ = update(ending_min_cost(14.0), [5.0, 16.0])
    np.testing.assert_allclose(state.cycle, [6.0, 15.0])
    assert int(state.cycles) == 1


# Convergence events by cycles.


def converging(cost, queue_cost=None, stage_cost=None, **fields):
    """The last cycle came to (6, cost), this one ends in min-cost with the same; the queue's three
    newest measurements are `queue_cost`, and the one to come makes it four. The stage's one measured
    cost so far is `stage_cost`."""
    queue_cost = cost if queue_cost is None else queue_cost
    given = {"budgets": [20.0], "cycles": 1} | fields
    return ending_min_cost(
        cost if stage_cost is None else stage_cost,
        cycle=[6.0, cost],
        queue=[[0, 0]] + [[6.0, queue_cost]] * 3,
        queue_filled=3,
        **given,
    )


def test_a_convergence_above_the_desired_cost_lowers_the_budget_and_projects():
    # Mean cost 14: d after min-cost is 14, then 14 + 1·(10 − 14) = 10.
    state, problem = update(converging(14.0), [6.0, 14.0], policy=42.0)
    assert int(state.stage) == PROJECTION
    assert int(state.events) == 1
    assert not bool(state.finished)
    assert one(problem.cost_limits) == pytest.approx(10.0)
    assert float(problem.anchor_weight) == 1.0
    assert float(problem.reward_weight) == 0.0
    assert one(problem.cost_weights) == 0.0
    assert float(problem.reward_limit) == -np.inf
    # The anchor is the policy of this moment, and history starts anew.
    assert float(state.anchor) == 42.0
    assert int(state.queue_filled) == 0
    assert int(state.cycles) == 0


@pytest.mark.parametrize(
    ("noise", "last", "stage", "budget"),
    [
        # The queue holds 12, 12, 12 and 14: mean 12.5 with a standard error of √3/4. Five of those are
        # 2.165, less than the excess of 2.5, of which 1 − (2.165/2.5)² = ¼ is believed; d after min-cost
        # is 13, then 13 − 0.625.
        (5.0, 14.0, PROJECTION, 12.375),
        # 12, 12, 12 and 18: mean 13.5, error √27/4. Three of those, 3.897, are more than the excess: d
        # stays where min-cost left it.
        (3.0, 18.0, MAX_REWARD, 15.0),
    ],
)
def test_what_may_be_noise_moves_no_budget_and_begins_no_projection(noise, last, stage, budget):
    before = converging(12.0, cycle_error=[100.0, 100.0])
    config = replace(SHORT, {"adversarial.noise": noise})
    state, _ = update(before, [6.0, last], config=config)
    assert int(state.events) == 1
    assert int(state.stage) == stage
    np.testing.assert_allclose(state.budgets, [budget], rtol=1e-4)


def test_the_gain_scales_the_step():
    # 14 + 0.5·(10 − 14) = 12
    config = replace(SHORT, {"adversarial.gain": 0.5})
    assert one(update(converging(14.0), [6.0, 14.0], config=config)[0].budgets) == pytest.approx(12.0)


def test_a_settled_overshoot_takes_the_budget_below_the_desired_one():
    # A solver that ends 3 above its limit: at d = 10 the cost is 13, so d becomes 10 − 3 = 7 …
    state, _ = update(converging(13.0, budgets=[10.0]), [6.0, 13.0])
    assert one(state.budgets) == pytest.approx(7.0)
    # … and the next min-cost stage at a mean of 8 does not lift it to 10 again.
    after = state._replace(
        stage=jnp.int32(MIN_COST), stage_length=jnp.int32(2), stage_mean=jnp.array([5.0, 8.0])
    )
    assert one(update(after, [5.0, 8.0])[0].budgets) == pytest.approx(7.0)


def test_a_budget_is_not_lowered_below_its_bound():
    # 10 + 1·(10 − 25) = −5, but the least is 0.5·10.
    assert one(update(converging(25.0, budgets=[10.0]), [6.0, 25.0])[0].budgets) == 5.0
    # Where it is lower already it stays.
    assert one(update(converging(25.0, budgets=[3.0]), [6.0, 25.0])[0].budgets) == 3.0


def test_budgets_never_become_negative():
    config = replace(SHORT, {"adversarial.lowered": 0.0})
    state, _ = update(converging(25.0, budgets=[3.0]), [6.0, 25.0], config=config)
    assert one(state.budgets) == 0.0


def test_a_convergence_below_the_desired_cost_raises_the_budget_without_projection():
    # Mean cost 8: d = 10 + 1·(10 − 8) = 12.
    state, problem = update(converging(8.0, budgets=[10.0]), [6.0, 8.0])
    assert int(state.stage) == MAX_REWARD
    assert one(problem.cost_limits) == pytest.approx(12.0)
    assert int(state.events) == 1
    config = replace(SHORT, {"adversarial.gain_under": 0.25})
    state, _ = update(converging(8.0, budgets=[10.0]), [6.0, 8.0], config=config)
    assert one(state.budgets) == pytest.approx(10.5)


def test_a_budget_is_not_raised_above_its_bound():
    # 10 + 1·(10 − 3) = 17, but the most is 1.5·10.
    state, _ = update(converging(3.0, budgets=[10.0]), [6.0, 3.0])
    assert one(state.budgets) == 15.0
    # From 15 there is nothing to steer: the cost does not bind, and the search is over.
    assert not bool(state.finished)
    state, _ = update(converging(3.0, budgets=[15.0], aim=[15.0]), [6.0, 3.0])
    assert one(state.budgets) == 15.0
    assert bool(state.finished)


def test_a_margin_aims_under_the_desired_budget():
    # A tenth under 10: everything is as if 9 were desired. Mean 14: 14 + (9 − 14) = 9.
    config = replace(SHORT, {"adversarial.margin": 0.1})
    state = fresh(config=config)
    np.testing.assert_allclose([one(state.desired), one(state.budgets)], [9.0, 18.0], rtol=1e-6)
    state, problem = update(converging(14.0, desired=[9.0], aim=[9.0]), [6.0, 14.0], config=config)
    assert one(problem.cost_limits) == pytest.approx(9.0)


def test_a_convergence_at_the_desired_cost_ends_the_search():
    # |10.05 − 10| ≤ 0.01·10
    state, _ = update(converging(10.05, budgets=[10.0]), [6.0, 10.05])
    assert bool(state.finished)
    assert int(state.stage) == MAX_REWARD
    assert one(state.budgets) == 10.0
    # |10.2 − 10| is not near enough.
    assert not bool(update(converging(10.2, budgets=[10.0]), [6.0, 10.2])[0].finished)


def test_the_event_goes_by_the_mean_of_the_queue():
    # Three 12s and the 16 that comes in now: mean 13, so d = min(20, max(15, 10)) + 10 − 13 = 12.
    config = replace(SHORT, {"adversarial.noise": 0.0, "adversarial.tolerance": 0.1})
    state, _ = update(converging(15.0, queue_cost=12.0, stage_cost=14.0), [6.0, 16.0], config=config)
    assert one(state.budgets) == pytest.approx(12.0)
    # Its standard error is √12/4, and 1 − 0.75/9 of 3 is believed: 15 − 2.75.
    config = replace(config, {"adversarial.noise": 1.0})
    state, _ = update(converging(15.0, queue_cost=12.0, stage_cost=14.0), [6.0, 16.0], config=config)
    assert one(state.budgets) == pytest.approx(12.25)


def test_only_the_part_of_the_queue_since_the_last_event_counts():
    # One old row of (0, 1000) stays in the queue of four but only two rows are since the event:
    # (14 + 16)/2 = 15, with a standard error of √2/2 → d = 15 − 5·(1 − 0.5/25).
    state = converging(15.0, stage_cost=14.0)._replace(
        queue=jnp.array([[0, 1000.0], [0, 1000.0], [0, 1000.0], [6.0, 14.0]]), queue_filled=jnp.int32(1)
    )
    assert one(update(state, [6.0, 16.0])[0].budgets) == pytest.approx(10.1)


@pytest.mark.parametrize(
    ("cycle", "converged"),
    [
        # Now (6, 14). The tolerance is 2 % of max(|value|, desired): 0.12 on the reward, 0.28 on the cost.
        ([6.0, 14.25], True),
        ([6.0, 14.30], False),
        ([6.11, 14.0], True),
        ([6.13, 14.0], False),
    ],
)
def test_a_cycle_converges_when_neither_value_moved(cycle, converged):
    state, _ = update(converging(14.0)._replace(cycle=jnp.array(cycle)), [6.0, 14.0])
    assert int(state.events) == int(converged)


@pytest.mark.parametrize(("before", "converged"), [(16.9, True), (17.1, False)])
def test_changes_within_their_noise_count_as_none(before, converged):
    # Costs 12 and 16: mean 14, variance 4, so 4/2 = 2 of the mean. The last cycle's had 7: √(2 + 7) = 3.
    state = converging(14.0, stage_cost=12.0, cycle_error=[0.0, 7.0])
    state = state._replace(cycle=jnp.array([6.0, before]))
    assert int(update(state, [6.0, 16.0])[0].events) == int(converged)
    deaf = replace(SHORT, {"adversarial.noise": 0.0})
    assert int(update(state, [6.0, 16.0], config=deaf)[0].events) == 0


def test_the_noise_of_the_reward_budget_is_that_of_a_mean():
    # Rewards 1, 2 and 3: variance 2/3, and a third of it in their mean.
    state, _ = update(ending_max_reward(3.0, 5.0, [23.0]), [3.0, 16.0])
    np.testing.assert_allclose(state.reward_error, 2 / 9, rtol=1e-5)


def test_a_small_cost_is_compared_in_units_of_the_desired_budget():
    # Costs of 1.0 and 1.15 differ by 15 % of themselves but by 1.5 % of 10: converged.
    state = converging(1.0, budgets=[10.0])._replace(cycle=jnp.array([6.0, 1.15]))
    assert int(update(state, [6.0, 1.0])[0].events) == 1


def test_one_cycle_alone_is_no_convergence():
    assert int(update(converging(14.0, cycles=0), [6.0, 14.0])[0].events) == 0


def test_nothing_converges_in_the_middle_of_a_stage():
    state = converging(14.0)._replace(stage_length=jnp.int32(1))
    assert int(update(state, [6.0, 14.0])[0].events) == 0


def test_with_two_costs_the_violated_one_moves_and_the_other_stays():
    # Means 14 and 6 of desired 10 and 10: the first goes 14 → 10, the second keeps its 15.
    state = state_of(
        (10.0, 10.0),
        stage=MIN_COST,
        stage_length=2,
        stage_mean=[6.0, 14.0, 6.0],
        reward_budget=6.0,
        budgets=[14.0, 15.0],
        aim=[10.0, 15.0],
        cycle=[6.0, 14.0, 6.0],
        cycles=1,
        queue=[[6.0, 14.0, 6.0]] * 4,
        queue_filled=4,
    )
    state, problem = update(state, [6.0, 14.0, 6.0])
    assert int(state.stage) == PROJECTION
    np.testing.assert_allclose(problem.cost_limits, [10.0, 15.0])


# Convergence events by queues: the paper's words.


def queued(cost, stage=MAX_REWARD, config=PAPER, **fields):
    return state_of(
        config=config,
        stage=stage,
        stage_length=1,
        queue=[[5.0, cost]] * 4,
        queue_filled=3,
        budgets=[15.0],
        **fields,
    )


def test_a_flat_queue_converges_in_any_stage_but_projection():
    for stage, events in ((MAX_REWARD, 1), (MIN_COST, 1), (PROJECTION, 0)):
        state, _ = update(queued(12.0, stage), [5.0, 12.0], config=PAPER)
        assert int(state.events) == events


def test_a_queue_event_lowers_the_budget_from_where_it_was():
    # Algorithm 3: d = d + k_p·(d_des − mean) = 15 + (10 − 12) = 13
    state, _ = update(queued(12.0), [5.0, 12.0], config=PAPER)
    assert one(state.budgets) == pytest.approx(13.0)
    assert int(state.stage) == PROJECTION


def test_a_queue_with_a_wide_spread_does_not_converge():
    # Costs 12, 12, 12, 13: a spread of 1 is more than 2 % of 13. Rewards alone may spread it, too.
    assert int(update(queued(12.0), [5.0, 13.0], config=PAPER)[0].events) == 0
    assert int(update(queued(12.0), [5.2, 12.0], config=PAPER)[0].events) == 0
    assert int(update(queued(12.0), [5.05, 12.2], config=PAPER)[0].events) == 1


def test_a_queue_that_is_not_full_does_not_converge():
    state = queued(12.0)._replace(queue_filled=jnp.int32(2))
    assert int(update(state, [5.0, 12.0], config=PAPER)[0].events) == 0


def test_one_plateau_is_one_event():
    seen = run([(5.0, 8.0)] * 8, state=queued(8.0), first=LATE, config=PAPER)
    # The queue of four is emptied by the first event and full again four iterations later.
    assert [int(state.events) for state, _ in seen] == [1, 1, 1, 1, 2, 2, 2, 2]


def test_the_paper_starts_from_its_own_first_budget():
    assert one(run([(1.0, 300.0)], config=PAPER)[0][1].cost_limits) == 20.0


# Projection.


def test_a_projection_lasts_until_the_cost_is_under_the_budget():
    projecting = state_of(stage=PROJECTION, stage_length=1, budgets=[9.0])
    state, problem = update(projecting, [1.0, 9.5])
    assert int(state.stage) == PROJECTION
    assert one(problem.cost_limits) == 9.0
    state, problem = update(state, [1.0, 9.0])
    assert int(state.stage) == MAX_REWARD
    assert float(problem.reward_weight) == 1.0


def test_a_projection_is_given_up_after_its_longest():
    seen = run([(1.0, 50.0)] * 4, state=state_of(stage=PROJECTION, stage_length=1, budgets=[9.0]), first=LATE)
    # Updates 2, 3 and 4 are projections; then four were made.
    assert stages(seen) == [PROJECTION, PROJECTION, PROJECTION, MAX_REWARD]


def test_a_projection_with_two_costs_waits_for_both():
    projecting = state_of((10.0, 10.0), stage=PROJECTION, stage_length=1, budgets=[9.0, 9.0])
    assert int(update(projecting, [1.0, 8.0, 9.5])[0].stage) == PROJECTION
    assert int(update(projecting, [1.0, 8.0, 8.5])[0].stage) == MAX_REWARD


def test_the_anchor_stays_through_the_projection():
    projecting = state_of(stage=PROJECTION, stage_length=1, budgets=[9.0], anchor=3.0)
    assert float(update(projecting, [1.0, 50.0], policy=8.0)[0].anchor) == 3.0


# Batches of seeds.


def test_seeds_in_different_stages_are_updated_side_by_side():
    states = [
        ending_max_reward(3.0, 5.0, [23.0]),
        converging(14.0),
        state_of(stage=PROJECTION, stage_length=1, budgets=[9.0]),
    ]
    rows = jnp.array([[3.0, 16.0], [6.0, 14.0], [1.0, 8.0]])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    together = jax.jit(
        jax.vmap(lambda s, r: adversarial.update(SHORT, s, r, jnp.float32(0), jnp.int32(LATE)))
    )(stacked, rows)
    for index, (state, row) in enumerate(zip(states, rows, strict=True)):
        alone = update(state, row)
        for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            np.testing.assert_allclose(a, b[index], rtol=1e-6)
    assert list(np.asarray(together[0].stage)) == [MIN_COST, PROJECTION, MAX_REWARD]
