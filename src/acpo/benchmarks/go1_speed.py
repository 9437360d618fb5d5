"""How fast the Go1 steps on this machine's threads: the whole task beside bare `mujoco.batch`.

    python -m acpo.benchmarks.go1_speed --out benchmarks/results/go1_speed.json

Both run in turns, so that other work on the machine slows both; the ratio is of neighbouring turns.
"Everything" is targets, physics, sensors, observation, reward, costs, ends, resets and the first
observations after them. "Bare" is the same physics with the same sensors refreshed, and no task.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import jax
import mujoco
import mujoco.batch
import numpy as np
import tyro

from acpo.physics.native import available_threads
from acpo.tasks.quadruped.config import make_config
from acpo.tasks.quadruped.model import build_model
from acpo.tasks.quadruped.native import Go1Native


@dataclass(frozen=True)
class Arguments:
    """What to measure."""

    num_envs: int = 512
    """Robots stepped together."""
    threads: int | None = None
    """Threads of the simulator; all CPUs of this process when not given."""
    preset: str = "default"
    """Preset of the task."""
    turns: int = 8
    """How often each of the two is measured."""
    steps: int = 100
    """Control steps in one turn."""
    out: Path | None = None
    """File to write the result to, besides printing it."""


def smooth_actions(num_envs: int, steps: int, seed: int = 0) -> np.ndarray:
    """[steps, B, 12] random actions with some persistence, so that robots move and fall."""
    rng = np.random.default_rng(seed)
    actions = np.zeros((steps, num_envs, 12), np.float32)
    for step in range(1, steps):
        noise = rng.standard_normal((num_envs, 12), dtype=np.float32)
        actions[step] = 0.9 * actions[step - 1] + 0.3 * noise
    return actions


def rate(step: Callable[[np.ndarray], object], actions: np.ndarray) -> float:
    """Control steps a second of `step` over actions [steps, B, 12]."""
    start = time.perf_counter()
    for action in actions:
        step(action)
    return actions.shape[0] * actions.shape[1] / (time.perf_counter() - start)


def measure(arguments: Arguments) -> dict[str, object]:
    """Both rates in turns, and what they were measured on."""
    config = make_config(arguments.preset)
    threads = arguments.threads or available_threads()
    task = Go1Native(config, arguments.num_envs, threads)
    task.reset(0)
    batch = mujoco.batch.Batch(build_model(config), arguments.num_envs, threads)
    ctrl, _ = batch.bind("ctrl"), batch.bind("sensordata")
    batch.bind("qpos")[:] = task.physics.batch.bind("qpos")
    stage = int(mujoco.mjtStage.mjSTAGE_ACC)

    def bare(action: np.ndarray) -> None:
        ctrl[:] = np.asarray(config.default_pose) + config.action_scale * action
        batch.step(nstep=config.decimation, stage=stage)

    actions = smooth_actions(arguments.num_envs, arguments.steps)
    rate(task.step, actions)
    everything, alone = [], []
    for _ in range(arguments.turns):
        # Bare robots that fell would lie in more contacts than the task, which resets them, allows.
        batch.state[:] = task.physics.batch.state
        alone.append(rate(bare, actions))
        everything.append(rate(task.step, actions))
    ratios = np.divide(everything, alone)
    return {
        "what": "control steps a second, Go1 on mujoco.batch",
        "arguments": {name: str(value) for name, value in asdict(arguments).items() if name != "out"},
        "threads": threads,
        "everything_best": round(max(everything)),
        "everything_median": round(float(np.median(everything))),
        "bare_best": round(max(alone)),
        "bare_median": round(float(np.median(alone))),
        "ratio_median": round(float(np.median(ratios)), 3),
        "ratios": [round(float(ratio), 3) for ratio in ratios],
        "everything": [round(value) for value in everything],
        "bare": [round(value) for value in alone],
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
        "mujoco": mujoco.__version__,
        "jax": jax.__version__,
    }


def main() -> None:
    arguments = tyro.cli(Arguments, description=__doc__)
    text = json.dumps(measure(arguments), indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
