"""How long an update takes at the paper's size, on made-up data: no environment is stepped.

First order (`ppo`, `ipo`, `ppo-lag`, `acpo`): seconds for one pass over the batch, policy and
critics together. Second order (`cpo`): seconds for the whole update, critics included.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from acpo import algorithms
from acpo.config import Config, replace
from acpo.learning.batch import Batch, normalise_advantages
from acpo.learning.networks import Critics, Policy
from acpo.problem import Problem, max_reward
from acpo.tasks.base import Box, TaskSpec

LIMITS = {"pass": 0.10, "update": 1.5}
"""Seconds on two cores that the product promises."""


def make_batch(spec: TaskSpec, policy: Policy, samples: int, key: jax.Array) -> Batch:
    """Standard normal observations and advantages; the policy's own actions."""
    keys = jax.random.split(key, 4)
    observations = jax.random.normal(keys[0], (samples, spec.observation_size))
    old = policy.distribution(observations)
    actions = old.sample(keys[1])
    signals = 1 + len(spec.costs)
    advantages, divisors = normalise_advantages(jax.random.normal(keys[2], (samples, signals)))
    return Batch(
        observations=observations,
        actions=actions,
        log_probs=old.log_prob(actions),
        old=old,
        anchor=None,
        advantages=advantages,
        targets=jax.random.normal(keys[3], (samples, signals)),
        returns=jnp.full(signals, 20.0),
        unit=divisors * 1000.0,
    )


def measure(algo: str, samples: int, size: int, costs: int, repeats: int) -> dict[str, Any]:
    """Best and median seconds of one update of `algo`, and of one pass of it."""
    spec = TaskSpec("made-up", size, Box(2), tuple(f"cost_{i}" for i in range(costs)), 1000)
    algorithm = algorithms.get(algo)
    # No KL stop: every pass is made, so that seconds per pass are what they say.
    config = replace(Config(algo=algo), {**algorithm.defaults, "ppo.kl": 1e9, "ppo.passes": 5})
    key = jax.random.PRNGKey(0)
    policy = Policy(spec, config.network, key=key)
    critics = Critics(spec, config.network, key=key)
    batch = make_batch(spec, policy, samples, key)
    problem: Problem = max_reward(jnp.full(costs, 25.0))
    update = jax.jit(functools.partial(algorithm.solver.update, config))
    state = algorithm.solver.init(config, policy, critics)

    def once(index: int) -> float:
        began = time.perf_counter()
        result = update(state, policy, critics, problem, batch, jax.random.PRNGKey(index), jnp.zeros(()))
        jax.block_until_ready(result)
        return time.perf_counter() - began

    once(0)
    seconds = sorted(once(1 + i) for i in range(repeats))
    first_order = "ppo" in algorithm.sections
    passes = config.ppo.passes if first_order else 1
    best, median = seconds[0] / passes, seconds[len(seconds) // 2] / passes
    kind = "pass" if first_order else "update"
    return {
        "algo": algo,
        "what": f"seconds a {kind}",
        "best": best,
        "median": median,
        "limit": LIMITS[kind],
        "samples": samples,
        "observations": size,
        "costs": costs,
        "cores": len(os.sched_getaffinity(0)),
    }


def run(
    algos: Sequence[str] = ("acpo", "ppo-lag", "cpo"),
    samples: int = 20000,
    size: int = 60,
    costs: int = 1,
    repeats: int = 7,
    emit: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Measure each algorithm; emits one JSON line each."""
    rows = []
    for algo in algos:
        rows.append(measure(algo, samples, size, costs, repeats))
        emit(json.dumps(rows[-1]))
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    lines = [f"{'algorithm':<10} {'what':<18} {'best':>8} {'median':>8} {'limit':>6} {'cores':>6}"]
    for row in rows:
        lines.append(
            f"{row['algo']:<10} {row['what']:<18} {row['best']:>8.3f} {row['median']:>8.3f}"
            f" {row['limit']:>6.2f} {row['cores']:>6}"
        )
    return "\n".join(lines)
