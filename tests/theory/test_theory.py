"""The paper's bounds on exact quantities, and the error of a barrier."""

import dataclasses
import functools

import numpy as np
import pytest
from scipy.optimize import minimize

from acpo.config import Config, replace
from acpo.errors import UserError
from acpo.tasks.tabular import TabularCMDP, random_cmdp
from acpo.theory import (
    Recording,
    broken,
    compare,
    divergence,
    measure,
    record,
    surrogate_optimum,
    switches,
)

DISCOUNT = 0.7


@functools.cache
def small() -> tuple[TabularCMDP, np.ndarray]:
    return random_cmdp(2, states=4, actions=3, costs=1, horizon=4)


def random_policies(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two tables, the second some way off the first."""
    rng = np.random.default_rng(seed)
    old = rng.dirichlet(np.ones(3), size=(4, 4))
    new = old * np.exp(rng.uniform(0, 2) * rng.normal(size=old.shape))
    return old, new / new.sum(axis=-1, keepdims=True)


def test_discounted_quantities_by_hand():
    # One state, two actions, two steps; rewards 1 and 3, costs 0 and 2. A policy that takes the
    # second with ¼, then ½; γ = ½.
    #   V_R at step 1: ½·1 + ½·3 = 2;  at step 0: ¾·1 + ¼·3 + ½·2 = 2.5
    #   A_R at step 0: 1 + 1 − 2.5 = −0.5 and 3 + 1 − 2.5 = 1.5;  at step 1: −1 and 1
    #   visits (1 − γ)(1, γ) = ½ and ¼; the last quarter is the end state's
    task = TabularCMDP([[[1.0], [1.0]]], [[1.0, 3.0]], [[[0.0, 2.0]]], [1.0], 2)
    old = np.array([[[0.75, 0.25]], [[0.5, 0.5]]])
    exact = measure(task, old, 0.5)
    np.testing.assert_allclose(exact.returns, [2.5, 0.5 + 0.5 * 1])
    np.testing.assert_allclose(exact.advantages[0, :, 0], [[-0.5, 1.5], [-1, 1]])
    np.testing.assert_allclose(exact.visits, [[0.5], [0.25]])
    # A new policy with ¾, then ½: E A_R = ¼·(−½) + ¾·1.5 = 1 and 0, so ε = 1, the surrogate
    # (½·1)/(1 − ½) = 1, and J grows by ½·(3 − 1) = 1. KL at step 0: ¼ log ⅓ + ¾ log 3 = ½ log 3.
    change = compare(task, old, np.array([[[0.25, 0.75]], [[0.5, 0.5]]]), 0.5)
    np.testing.assert_allclose(change.epsilons[0], 1.0)
    np.testing.assert_allclose(change.surrogates[0], 1.0)
    np.testing.assert_allclose(change.differences[0], 1.0)
    np.testing.assert_allclose(change.kl, 0.5 * 0.5 * np.log(3))
    # √(2·KL)·γ/(1 − γ)²·ε = √(½ log 3)·2
    np.testing.assert_allclose(change.gap(0.5)[0], 2 * np.sqrt(0.5 * np.log(3)))


def test_kl_by_hand():
    np.testing.assert_allclose(divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5])), np.log(2))


def test_the_performance_bound_holds_for_any_two_policies():
    task, _ = small()
    tight = 0.0
    for seed in range(60):
        change = compare(task, *random_policies(seed), DISCOUNT)
        error = np.abs(change.differences - change.surrogates)
        assert np.all(error <= change.gap(DISCOUNT) + 1e-12)
        tight = max(tight, float(np.max(error / change.gap(DISCOUNT))))
    # It is a bound on something: not all errors vanish beside it.
    assert tight > 0.01


# A run of the engine.

RUN = replace(
    Config(),
    {
        "algo": "acpo",
        "steps": 400 * 36,
        "network.hidden": (),
        "network.normalise": False,
        "advantage.discount": DISCOUNT,
        "advantage.cost_discount": DISCOUNT,
        "rollout.envs": 100,
        "rollout.batch": 400,
        "ppo.minibatch": 100,
        "ppo.learning_rate": 0.02,
        "ppo.passes": 4,
        "critic.learning_rate": 0.05,
        "adversarial.explore": 4,
        "adversarial.max_reward": 4,
        "adversarial.min_cost": 3,
        "adversarial.skip_satisfied": False,
        # No convergence event, nothing else that moves d: the cycles follow one another to the end.
        "adversarial.tolerance": 0.0,
        "adversarial.noise": 0.0,
        "adversarial.deadline": 0.0,
        "adversarial.settle": 0.0,
        # Policies move to the end.
        "ppo.final_learning_rate": 0.5,
    },
)


@functools.cache
def run() -> Recording:
    task, budgets = small()
    return record(RUN, task, budgets)


def test_the_bounds_hold_at_every_switch_of_a_real_run():
    task, budgets = small()
    inverse_t = RUN.interior_point.kappa * float(budgets[0]) * (1 - DISCOUNT)
    rows = switches(task, run(), DISCOUNT, inverse_t)
    assert len([row for row in rows if row.signal == 0]) >= 3
    assert len([row for row in rows if row.signal == 1]) >= 3
    assert not broken(rows)
    # The bounds say something: typically less than the best policy is above chance.
    first, best = (measure(task, table, DISCOUNT) for table in (task.uniform(), task.optimum().policy))
    spread = best.returns[0] - first.returns[0]
    assert np.median([abs(row.bound) for row in rows]) < spread
    for row in rows:
        # n_1 = 4 and n_2 = 3, whatever was taken from the configuration.
        assert row.updates == (4, 3)
        assert row.delta > 1e-4
        # The sum of the proofs is at least as sharp as the theorem, the proposition less.
        assert abs(row.bound_lemma) <= abs(row.bound) + 1e-12
        assert abs(row.bound) < abs(row.bound_interior)
        assert row.moved >= row.bound_lemma if row.signal == 0 else row.moved <= row.bound_lemma
        assert dataclasses.asdict(row)["signal"] == row.signal


def test_a_fabricated_violation_is_found():
    # The same policies again and again while the reward collapses in one update of a whole cycle
    # that otherwise stands still: from the best policy to the worst.
    task, _ = small()
    best = task.optimum().policy
    worst = TabularCMDP(task.transitions, -task.reward, task.costs, task.initial, task.horizon).optimum()
    soft = 0.999 * best + 0.001 / 3
    fallen = 0.999 * worst.policy + 0.001 / 3
    policies = [soft] * 6 + [fallen] * 4
    # max, max, min, min, max, max, min …: the fall is in the second max-reward stage.
    stages = [0, 0, 1, 1, 0, 0, 1, 1, 0]
    rows = switches(task, Recording(policies, stages, [0] * 9), 0.3)
    # At γ = 0.3 a KL of about 7 still allows less than a fall of the whole reward; were it not so,
    # the bound would be empty and this test in vain.
    reward = next(row for row in rows if row.signal == 0)
    assert reward.moved < -0.3
    claimed = dataclasses.replace(reward, bound=reward.bound / 20, bound_interior=reward.bound / 20)
    assert broken([claimed]) == [claimed]


def test_a_fall_that_the_theorem_forbids_is_found():
    # Two actions in one state and one step: rewards 0 and 1. A cycle that gives up nothing in its
    # first updates and 0.1 in the last: J falls from 0.6 to 0.5. With γ = 0.1 the bound is
    # −√(2·KL)·0.1/0.81·2·ε, with ε = 0.1 and KL = (1 − γ)·KL(½‖0.6) = 0.9·0.020411 = 0.018370:
    # −0.191677·0.123457·2·0.1 = −0.004733.
    task = TabularCMDP([[[1.0], [1.0]]], [[0.0, 1.0]], [[[0.0, 0.0]]], [1.0], 1)
    table = lambda share: np.array([[[1 - share, share]]])  # noqa: E731
    policies = [table(0.6)] * 3 + [table(0.5)] * 2
    rows = switches(task, Recording(policies, [0, 1, 0, 1], [0] * 4), 0.1)
    assert [row.signal for row in rows] == [0]
    np.testing.assert_allclose(rows[0].moved, -0.1)
    np.testing.assert_allclose(rows[0].bound, -0.004733, rtol=1e-3)
    assert rows[0].updates == (1, 1)
    assert broken(rows) == rows
    # A barrier of 1/t = 0.1 may lose n_1/((1 − γ)·t) = 0.1/0.9 more: the proposition holds.
    rows = switches(task, Recording(policies, [0, 1, 0, 1], [0] * 4), 0.1, inverse_t=0.1)
    np.testing.assert_allclose(rows[0].bound_interior, -0.004733 - 0.111111, rtol=1e-3)
    assert rows[0].holds_interior
    assert not rows[0].holds


def test_a_cost_that_rises_more_than_allowed_is_found():
    task = TabularCMDP([[[1.0], [1.0]]], [[0.0, 0.0]], [[[0.0, 1.0]]], [1.0], 1)
    table = lambda share: np.array([[[1 - share, share]]])  # noqa: E731
    policies = [table(0.4)] * 4 + [table(0.5)]
    rows = switches(task, Recording([*policies, table(0.5)], [0, 1, 0, 1, 0], [0] * 5), 0.1)
    assert [row.signal for row in rows] == [0, 1]
    np.testing.assert_allclose(rows[1].moved, 0.1)
    assert broken(rows) == [rows[1]]


def test_projections_and_events_begin_a_new_chain():
    task, _ = small()
    policies = [task.uniform()] * 12
    stages = [0, 1, 0, 1, 0, 1, 0]
    plain = switches(task, Recording(policies[:8], stages, [0] * 7), DISCOUNT)
    assert [(row.update, row.signal) for row in plain] == [(3, 0), (4, 1), (5, 0), (6, 1)]
    # An event at update 4 moves the budgets there: d is compared at 4, then both begin anew.
    rows = switches(task, Recording(policies[:8], stages, [0, 0, 0, 0, 1, 1, 1]), DISCOUNT)
    assert [(row.update, row.signal) for row in rows] == [(3, 0), (4, 1)]
    # A projection in the middle: nothing is compared across it.
    stages = [0, 1, 2, 0, 1, 0, 1, 0]
    rows = switches(task, Recording(policies[:9], stages, [0] * 8), DISCOUNT)
    assert [(row.update, row.signal) for row in rows] == [(6, 0), (7, 1)]


def test_a_discount_of_one_has_no_bound():
    with pytest.raises(UserError, match="discount"):
        switches(small()[0], Recording([], [], []), 1.0)


# The 1/t bound.

RADIUS = 0.05


def binding_budget(task: TabularCMDP, old: np.ndarray) -> float:
    """A little under what the best unlimited policy of the trust region costs."""
    return 100 - surrogate_optimum(task, old, 100.0, RADIUS, DISCOUNT).slack - 0.03


def test_the_exact_surrogate_optimum_equals_slsqp():
    task, _ = random_cmdp(2, states=2, actions=3, costs=1, horizon=2)
    old = random_policies(0)[0][:2, :2]
    budget = binding_budget(task, old)
    exact = measure(task, old, DISCOUNT)
    weight = exact.visits[:, :, None]

    def table(flat):
        return flat.reshape(old.shape)

    for inverse_t in (0.0, 0.02):
        mine = surrogate_optimum(task, old, budget, RADIUS, DISCOUNT, inverse_t)

        def slack(flat):
            change = np.sum(weight * table(flat) * exact.advantages[1]) / (1 - DISCOUNT)
            return budget - exact.returns[1] - change

        def goal(flat, inverse_t=inverse_t):
            value = np.sum(weight * table(flat) * exact.advantages[0])
            return -value - (inverse_t * np.log(max(slack(flat), 1e-12)) if inverse_t else 0.0)

        constraints = [
            {"type": "eq", "fun": lambda flat: table(flat).sum(axis=-1).ravel() - 1},
            {
                "type": "ineq",
                "fun": lambda flat: RADIUS - np.sum(exact.visits * divergence(table(flat), old)),
            },
            {"type": "ineq", "fun": slack},
        ]
        theirs = minimize(
            goal,
            old.ravel(),
            bounds=[(1e-9, 1)] * old.size,
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 300, "ftol": 1e-12},
        )
        assert theirs.success
        value = float(np.sum(weight * table(theirs.x) * exact.advantages[0]))
        assert mine.value == pytest.approx(value, abs=1e-4)
        assert mine.kl <= RADIUS * (1 + 1e-6)
        assert mine.slack >= -1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_barrier_loses_at_most_one_over_t(seed):
    task, _ = small()
    old, _ = random_policies(seed)
    budget = binding_budget(task, old)
    best = surrogate_optimum(task, old, budget, RADIUS, DISCOUNT)
    # The limit binds (by its slack of zero), or nothing would be lost.
    assert best.multiplier > 0
    assert best.slack == pytest.approx(0, abs=1e-6)
    losses = []
    for t in (10.0, 100.0, 1000.0, 10000.0):
        barrier = surrogate_optimum(task, old, budget, RADIUS, DISCOUNT, 1 / t)
        assert barrier.multiplier * barrier.slack == pytest.approx(1 / t, rel=1e-5)
        loss = best.value - barrier.value
        assert -1e-9 <= loss <= 1 / t
        losses.append(loss * t)
    # As t grows the bound becomes tight: λ·slack = 1/t is what is lost, to first order.
    assert losses[-1] > 0.9
    assert losses[0] < losses[-1]


def test_a_limit_that_does_not_bind_costs_nothing():
    task, _ = small()
    old, _ = random_policies(1)
    free = surrogate_optimum(task, old, 100.0, RADIUS, DISCOUNT)
    assert free.multiplier == 0
    assert free.kl == pytest.approx(RADIUS, rel=1e-6)
    with pytest.raises(UserError, match="trust region"):
        surrogate_optimum(task, old, 0.0, RADIUS, DISCOUNT)
