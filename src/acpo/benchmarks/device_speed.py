"""How fast tasks run inside the compiled graph: physics, reward, cost, observation, resets.

The whole rollout, random actions included, is one jitted scan; its time is taken from its second
run on. Each task is one JSON line.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from acpo import tasks
from acpo.errors import UserError
from acpo.tasks.base import Box, DeviceTask

TASKS = ("PointGoal1", "CarGoal1", "PointCircle1", "CarCircle1", "Go1")
GOALS = {"PointGoal1": 1.2e6, "CarGoal1": 4e5, "PointCircle1": 2.5e6, "CarCircle1": 6e5}
"""Steps a second on an H200 that the project promises, with 32768 worlds."""


@functools.partial(jax.jit, static_argnums=(3, 4))
def rollout(
    task: DeviceTask, state: Any, key: jax.Array, steps: int, num_envs: int
) -> tuple[Any, dict[str, jax.Array]]:
    """`steps` steps of uniform random actions in ±1; sums of what they gave, so that nothing of it
    can be left uncomputed."""
    actions = task.spec().actions
    assert isinstance(actions, Box)

    def step(state: Any, key: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        random = jax.random.uniform(key, (num_envs, actions.size), minval=-1.0, maxval=1.0)
        state, out = task.step(state, random)
        ended = jnp.asarray(out.terminated) | jnp.asarray(out.truncated)
        return state, {
            "reward": jnp.mean(out.reward),
            "cost": jnp.mean(out.costs),
            "observation": jnp.mean(jnp.abs(out.observation)),
            "episodes": jnp.sum(ended),
            "failed": jnp.sum(out.failed),
        }

    state, sums = jax.lax.scan(step, state, jax.random.split(key, steps))
    return state, jax.tree.map(jnp.sum, sums)


def measure(name: str, num_envs: int, steps: int, repeats: int, impl: str | None) -> dict[str, Any]:
    task = tasks.make(name, num_envs, "mjx", impl=impl)
    assert isinstance(task, DeviceTask)
    key = jax.random.PRNGKey(0)
    began = time.perf_counter()
    state, _ = jax.jit(type(task).reset, static_argnums=2)(task, key, num_envs)
    state, sums = jax.block_until_ready(rollout(task, state, key, steps, num_envs))
    compiling = time.perf_counter() - began
    seconds = []
    episodes = failed = 0
    for i in range(repeats):
        began = time.perf_counter()
        state, sums = jax.block_until_ready(rollout(task, state, jax.random.fold_in(key, i), steps, num_envs))
        seconds.append(time.perf_counter() - began)
        episodes += int(sums["episodes"])
        failed += int(sums["failed"])
    device = jax.devices()[0]
    rates = sorted(num_envs * steps / s for s in seconds)
    row = {
        "task": name,
        "device": device.device_kind,
        "implementation": task.physics.implementation,  # type: ignore[attr-defined]
        "worlds": num_envs,
        "steps_per_second": round(rates[len(rates) // 2]),
        "best": round(rates[-1]),
        "compile_seconds": round(compiling, 1),
        "episodes": episodes,
        "failed": failed,
        "mean_reward": float(sums["reward"]) / steps,
        "mean_cost": float(sums["cost"]) / steps,
    }
    if name in GOALS and num_envs == 32768:
        row["promised"] = round(GOALS[name])
    return row


def run(
    names: Sequence[str] = TASKS,
    *,
    num_envs: int = 32768,
    steps: int = 100,
    repeats: int = 3,
    impl: str | None = None,
    emit: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Measure each task; emits a JSON line each."""
    for name in names:
        if name not in TASKS:
            raise UserError(f"The speed of '{name}' cannot be measured here; known are: {', '.join(TASKS)}.")
    rows = []
    for name in names:
        rows.append(measure(name, num_envs, steps, repeats, impl))
        emit(json.dumps(rows[-1]))
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        f"{'task':<14} {'worlds':>7} {'steps/s':>10} {'best':>10} {'promised':>9} {'compiling':>10}  device"
    ]
    for row in rows:
        lines.append(
            f"{row['task']:<14} {row['worlds']:>7} {row['steps_per_second']:>10} {row['best']:>10}"
            f" {row.get('promised', '-'):>9} {row['compile_seconds']:>9.0f}s  {row['device']}"
        )
    return "\n".join(lines)
