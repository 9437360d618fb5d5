"""One iteration as a pure function: compiled once, the same for every seed, bit for bit repeatable."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from walkers import BATCH, HORIZON, HostWalk, Walk, config

from acpo import algorithms, training
from acpo.config import Config, replace
from acpo.tasks.tabular import TabularCMDP
from acpo.training import Trainer

QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


def leaves(tree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def assert_same(one, other, **tolerance):
    for a, b in zip(leaves(one), leaves(other), strict=True):
        if tolerance:
            np.testing.assert_allclose(a, b, **tolerance)
        else:
            np.testing.assert_array_equal(a, b)


# Stages of one or two iterations, and a tolerance under which every cycle converges: with a budget
# that the cost is over, the run goes through all three stages in ten iterations.
BUSY = config(
    "acpo",
    adversarial__explore=1,
    adversarial__max_reward=2,
    adversarial__min_cost=1,
    adversarial__projection=2,
    adversarial__tolerance=100.0,
    seeds=2,
)


@functools.cache
def busy_run() -> tuple[Trainer, list, list[int]]:
    running = Trainer(BUSY, Walk(), np.array([0.2]))
    compiled, rows = [], []
    for _ in range(12):
        rows.append(running.iterate())
        compiled.append(training._iterate_seeds._cache_size())
    return running, rows, compiled


def test_no_stage_compiles_anything():
    _, rows, compiled = busy_run()
    stages = {int(stage) for row in rows for stage in row["stage"]}
    assert stages == {0, 1, 2}
    assert len(set(compiled)) == 1


def test_seeds_side_by_side_equal_runs_of_their_own():
    together, rows, _ = busy_run()
    alone = Trainer(replace(BUSY, {"seeds": 1, "seed": 1}), Walk(), np.array([0.2]))
    for row in rows[:6]:
        mine = alone.iterate()
        for name in ("reward", "costs", "stage", "budgets", "kl"):
            np.testing.assert_allclose(mine[name][0], row[name][1], rtol=2e-3, atol=2e-4, err_msg=name)
    assert not np.allclose(rows[0]["reward"][0], rows[0]["reward"][1])
    assert together.iteration == 12


def test_runs_repeat_bit_for_bit():
    first, rows, _ = busy_run()
    second = Trainer(BUSY, Walk(), np.array([0.2]))
    for row in rows:
        again = second.iterate()
        for name in set(row) - {"seconds"}:
            np.testing.assert_array_equal(again[name], row[name], err_msg=name)
    assert_same(first.state, second.state)


def test_an_iteration_leaves_its_argument_alone():
    running, *_ = busy_run()
    state = running.state
    before = [leaf.copy() for leaf in leaves(state)]
    one, _ = training._iterate_seeds(BUSY, running.task, state)
    other, _ = training._iterate_seeds(BUSY, running.task, state)
    assert_same(one, other)
    for leaf, old in zip(leaves(state), before, strict=True):
        np.testing.assert_array_equal(leaf, old)
    assert np.all(np.asarray(one.iteration) == np.asarray(state.iteration) + 1)


def test_host_runs_repeat_and_equal_runs_of_their_own():
    settings = config("ipo", seeds=2)
    budget = np.array([1.0])
    runs = [Trainer(settings, [HostWalk(), HostWalk()], budget) for _ in range(2)]
    alone = Trainer(replace(settings, {"seeds": 1, "seed": 1}), [HostWalk()], budget)
    for _ in range(2):
        one, other, mine = runs[0].iterate(), runs[1].iterate(), alone.iterate()
        np.testing.assert_array_equal(one["reward"], other["reward"])
        np.testing.assert_allclose(mine["reward"][0], one["reward"][1], rtol=1e-3)
    assert_same(runs[0].state, runs[1].state)


def test_a_host_rollout_records_the_observation_that_was_acted_on():
    task = HostWalk(num_envs=3)
    first = task.reset(0).observation
    actions = np.ones((1, 3, 2), np.float32)
    final, rollout = training.collect_from_host([task], [first], lambda seen, t: actions, HORIZON + 1)
    np.testing.assert_array_equal(rollout.observations[0, 0], first)
    over = rollout.steps.terminated | rollout.steps.truncated
    for t in range(HORIZON):
        going_on = ~over[0, t]
        np.testing.assert_array_equal(
            rollout.observations[0, t + 1][going_on], rollout.steps.final_observation[0, t][going_on]
        )
        # A new episode starts from nought, whatever the last one came to.
        np.testing.assert_array_equal(rollout.observations[0, t + 1][~going_on], 0)
    assert over.any()
    assert final[0].shape == (3, 2)


# Every algorithm with no cost and with eight, with continuous and with discrete actions.


def two_iterations(settings: Config, task, budgets) -> dict:
    state = training.start(settings, task, jnp.asarray(budgets, jnp.float32), jax.random.PRNGKey(0))
    iterate = jax.jit(training.iterate, static_argnums=0, compiler_options=QUICK)
    for _ in range(2):
        state, metrics = iterate(settings, task, state)
    return metrics


def check(metrics: dict, costs: int) -> None:
    assert metrics["costs"].shape == (costs,)
    assert metrics["budgets"].shape == (costs,)
    assert int(metrics["iteration"]) == 2
    assert not np.any(metrics["non_finite"])
    assert np.isfinite(float(metrics["reward"]))
    assert float(metrics["kl"]) > 0


# Each solver and each schedule once where minutes count, all of them in the long tests.
FAST = [("acpo", 0), ("acpo", 8), ("acpo-cpo", 8), ("crpo", 0), ("ppo-lag", 8)]
ALL = [(name, costs) for name in algorithms.ALGORITHMS for costs in (0, 8)]
CASES = [pytest.param(*case, marks=() if case in FAST else pytest.mark.long) for case in ALL]


@pytest.mark.parametrize(("algo", "costs"), CASES)
def test_continuous_actions(algo, costs):
    check(two_iterations(config(algo), Walk(costs), [0.5] * costs), costs)


TABULAR = [("acpo", 8), ("cpo", 0)]


@pytest.mark.parametrize(
    ("algo", "costs"),
    [pytest.param(*case, marks=() if case in TABULAR else pytest.mark.long) for case in ALL],
)
def test_discrete_actions(algo, costs):
    rng = np.random.default_rng(1)
    task = TabularCMDP(
        transitions=rng.dirichlet(np.ones(3), size=(3, 2)),
        reward=rng.uniform(size=(3, 2)),
        costs=rng.uniform(size=(costs, 3, 2)),
        initial=np.full(3, 1 / 3),
        horizon=4,
    )
    budgets = task.evaluate(task.uniform())[1]
    settings = replace(
        config(algo), {"network.hidden": (), "network.normalise": False, "rollout.batch": BATCH}
    )
    check(two_iterations(settings, task, budgets), costs)
