"""Whole training, steps per second: ours beside OmniSafe, on the same task with the same settings.

PointGoal1, batches of 20000, minibatches of 64, at most 40 passes that stop at the KL target (CPO:
its own 10 critic passes). Ours is timed from the second iteration, when everything is compiled;
OmniSafe over its whole `learn`, as it has nothing to compile. Each runs alone, one after the other:
PyTorch's threads collapse when they share the cores. The physics' share is measured by stepping the
same simulation without task, policy or learner.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acpo import configure
from acpo.config import Config
from acpo.errors import UserError
from acpo.runs import simulators
from acpo.tasks.base import HostTask
from acpo.training import Trainer

TASK = "PointGoal1"
PEERS = {"ppo-lag": "PPOLag", "cpo": "CPO"}
PEER_STEPS = 40_000

_PEER = """
import sys, tempfile, time
import omnisafe
algo, task, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
agent = omnisafe.Agent(algo, task, custom_cfgs={
    "train_cfgs": {"total_steps": steps, "vector_env_nums": 1, "parallel": 1,
                   "torch_threads": int(sys.argv[4])},
    "algo_cfgs": {"steps_per_epoch": 20000},
    "logger_cfgs": {"use_wandb": False, "use_tensorboard": False, "log_dir": tempfile.mkdtemp()},
})
began = time.time()
agent.learn()
print("RATE", steps / (time.time() - began))
"""


def settings(algo: str, steps: int) -> Config:
    """Those of the paper's table, which are OmniSafe's but for the number of environments."""
    return configure.build(algo, TASK, preset="paper", changes={"budget": 25.0, "steps": steps})


def measure(algo: str, steps: int) -> dict[str, Any]:
    """Our steps per second and where the time goes, in seconds per iteration."""
    if algo not in PEERS:
        raise UserError(f"Training speed is compared for {' and '.join(PEERS)}, not for {algo}.")
    config = settings(algo, steps)
    source = simulators.find(TASK, config.backend)
    task = simulators.build(source, config)
    assert isinstance(task, list)
    trainer = Trainer(config, task, np.array([25.0]))
    trainer.iterate()
    began = time.perf_counter()
    history = [trainer.iterate() for _ in range(config.iterations - 1)]
    total = (time.perf_counter() - began) / len(history)
    rollout = float(np.mean([m["rollout_seconds"][0] for m in history]))
    turns = config.rollout.batch // config.rollout.envs
    physics, whole = _simulation(task[0], turns)
    return {
        "algo": algo,
        "task": TASK,
        "steps_per_second": config.rollout.batch / total,
        "iteration_seconds": total,
        "physics": physics,
        "task_logic": whole - physics,
        "policy": max(rollout - whole, 0.0),
        "update": total - rollout,
        "passes": float(np.mean([m["passes"][0] for m in history])),
        "iterations": len(history),
        "cores": len(os.sched_getaffinity(0)),
    }


def _simulation(task: HostTask, turns: int) -> tuple[float, float]:
    """Seconds of `turns` steps: physics alone, and the whole task."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (turns, task.num_envs, task.spec().actions.size))  # type: ignore[union-attr]
    task.reset(0)
    began = time.perf_counter()
    for action in actions:
        task.step(action)
    whole = time.perf_counter() - began
    physics = getattr(task, "physics", None)
    if physics is None:
        return 0.0, whole
    controls = np.zeros((task.num_envs, physics.batch.bind("ctrl").shape[1]))
    began = time.perf_counter()
    for _ in range(turns):
        physics.step(controls)
    alone = time.perf_counter() - began
    return min(alone, whole), whole


def measure_peer(algo: str, python: Path) -> float:
    """OmniSafe's steps per second."""
    words = [str(python), "-c", _PEER, PEERS[algo], f"Safety{TASK}-v0", str(PEER_STEPS)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*words, str(len(os.sched_getaffinity(0)))],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    rates = [line for line in done.stdout.splitlines() if line.startswith("RATE")]
    if not rates:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise UserError(f"OmniSafe did not run: {last}")
    return float(rates[0].split()[1])


def run(
    algos: Sequence[str] = tuple(PEERS),
    steps: int = 120_000,
    peers: Path | None = None,
    emit: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Measure each algorithm, ours first; emits a JSON line each."""
    rows = []
    for algo in algos:
        row = measure(algo, steps)
        if peers is not None:
            row["peer_steps_per_second"] = measure_peer(algo, peers)
            row["times_peer"] = row["steps_per_second"] / row["peer_steps_per_second"]
        rows.append(
            {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
        )
        emit(json.dumps(rows[-1]))
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Steps per second, and seconds of one iteration by what they are spent on."""
    head = f"{'algorithm':<10} {'steps/s':>8} {'OmniSafe':>9} {'times':>6} | {'physics':>8} {'task':>6}"
    lines = [head + f" {'policy':>7} {'update':>7} {'sum':>6}   (seconds an iteration)"]
    for row in rows:
        peer = f"{row['peer_steps_per_second']:.0f}" if "times_peer" in row else "-"
        times = f"{row['times_peer']:.1f}" if "times_peer" in row else "-"
        lines.append(
            f"{row['algo']:<10} {row['steps_per_second']:>8.0f} {peer:>9} {times:>6} | {row['physics']:>8.2f}"
            f" {row['task_logic']:>6.2f} {row['policy']:>7.2f} {row['update']:>7.2f}"
            f" {row['iteration_seconds']:>6.2f}   on {row['cores']} cores"
        )
    return "\n".join(lines)
