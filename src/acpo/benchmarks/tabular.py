"""Every algorithm on random finite CMDPs, judged by exact values against the linear programme.

Normalised regret is (optimum − exact return of the learned policy) / (optimum − uniform policy's
return); violation is max over costs of max(0, exact cost − budget) / budget. All instances are
trained side by side in one `vmap`.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from acpo import algorithms, training
from acpo.config import Config, replace
from acpo.rollout import Rollout
from acpo.tasks.base import TaskSpec
from acpo.tasks.tabular import TabularCMDP, random_cmdp
from acpo.training import TrainState, gather, start

ITERATIONS = 300
CONSTRAINED = tuple(name for name, a in algorithms.ALGORITHMS.items() if a.constrained)


class Instance(NamedTuple):
    task: TabularCMDP
    budgets: np.ndarray
    optimum: float
    uniform: float


def instances(count: int, costs: int) -> list[Instance]:
    made = []
    for seed in range(count):
        task, budgets = random_cmdp(seed, costs=costs)
        made.append(Instance(task, budgets, task.optimum(budgets).value, task.evaluate(task.uniform())[0]))
    return made


def configure(algo: str, task: TabularCMDP, steps: int, seed: int, overrides: dict[str, Any]) -> Config:
    """The settings of a tabular run: the algorithm's, then the task's, then what was asked for; 300
    iterations where no steps are."""
    settings = {**algorithms.get(algo).defaults, **task.defaults(algo), **overrides}
    config = replace(Config(task="Tabular", algo=algo, seed=seed), settings)
    return replace(config, {"steps": steps or ITERATIONS * config.rollout.batch})


@functools.partial(jax.jit, static_argnums=0)
def _gather(config: Config, tasks: TabularCMDP, states: TrainState) -> tuple[TrainState, Rollout, jax.Array]:
    return jax.vmap(functools.partial(gather, config))(tasks, states)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _learn(
    config: Config, spec: TaskSpec, states: TrainState, rollouts: Rollout, keys: jax.Array
) -> tuple[TrainState, dict[str, Any]]:
    return jax.vmap(lambda *seen: training.learn(config, spec, *seen))(states, rollouts, keys)


def _iterate(
    config: Config, spec: TaskSpec, tasks: TabularCMDP, states: TrainState
) -> tuple[TrainState, dict[str, Any]]:
    """`training.iterate` in two programs: in one, XLA's layouts make it take half as long again."""
    return _learn(config, spec, *_gather(config, tasks, states))


def learn(
    algo: str, made: Sequence[Instance], steps: int, seed: int, overrides: dict[str, Any]
) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Train one algorithm on all instances at once → policy tables [I, H, S, A], metrics."""
    config = configure(algo, made[0].task, steps, seed, overrides)
    tasks = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(i.task for i in made))
    budgets = jnp.asarray(np.stack([i.budgets for i in made]), jnp.float32)
    keys = jax.random.split(jax.random.PRNGKey(seed), len(made))
    states = jax.jit(jax.vmap(functools.partial(start, config)))(tasks, budgets, keys)
    history = []
    for _ in range(config.iterations):
        states, metrics = _iterate(config, made[0].task.spec(), tasks, states)
        history.append(jax.device_get(metrics))
    policies = [jax.tree.map(lambda leaf, i=i: leaf[i], states.policy) for i in range(len(made))]
    tables = [instance.task.policy_table(policy) for instance, policy in zip(made, policies, strict=True)]
    return np.stack(tables), history


def run(
    algos: Sequence[str] = CONSTRAINED,
    costs: Sequence[int] = (1, 2),
    count: int = 20,
    steps: int = 0,
    seed: int = 0,
    overrides: dict[str, Any] | None = None,
    emit: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Train and judge; emits one JSON line per instance and returns a summary row per algorithm."""
    summary = []
    for num_costs in costs:
        made = instances(count, num_costs)
        for algo in algos:
            began = time.perf_counter()
            tables, _ = learn(algo, made, steps, seed, overrides or {})
            seconds = time.perf_counter() - began
            rows = []
            for index, (instance, table) in enumerate(zip(made, tables, strict=True)):
                value, spent = instance.task.evaluate(table)
                row = {
                    "algo": algo,
                    "costs": num_costs,
                    "instance": index,
                    "regret": (instance.optimum - value) / (instance.optimum - instance.uniform),
                    "violation": float(np.max(np.maximum(0, spent - instance.budgets) / instance.budgets)),
                    "value": value,
                    "optimum": instance.optimum,
                    "cost": spent.tolist(),
                    "budget": instance.budgets.tolist(),
                }
                rows.append(row)
                emit(json.dumps(row))
            regrets = np.array([row["regret"] for row in rows])
            violations = np.array([row["violation"] for row in rows])
            summary.append(
                {
                    "algo": algo,
                    "costs": num_costs,
                    "regret_median": float(np.median(regrets)),
                    "regret_worst": float(regrets.max()),
                    "violation_median": float(np.median(violations)),
                    "violation_worst": float(violations.max()),
                    "seconds": seconds,
                }
            )
    return summary


def table(summary: Sequence[dict[str, Any]]) -> str:
    """The summary as aligned text, in per cent."""
    head = f"{'algorithm':<10} {'costs':>5} {'regret: median':>15} {'worst':>7}"
    lines = [head + f" {'violation: median':>18} {'worst':>7} {'seconds':>8}"]
    for row in summary:
        lines.append(
            f"{row['algo']:<10} {row['costs']:>5} {row['regret_median']:>15.2%} {row['regret_worst']:>7.2%}"
            f" {row['violation_median']:>18.2%} {row['violation_worst']:>7.2%} {row['seconds']:>8.0f}"
        )
    return "\n".join(lines)
