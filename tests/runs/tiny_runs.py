"""Runs of a second: tiny tasks, ways to interrupt them, and what it means that two are the same."""

from __future__ import annotations

import contextlib
import csv
import functools
import signal
import sys
from pathlib import Path
from typing import Any

import foreign_envs
import numpy as np

import acpo
from acpo.api import Run
from acpo.runs import progress
from acpo.runs.checkpoints import Checkpoint, Checkpoints
from acpo.runs.metrics import TIMING
from acpo.runs.session import RunOptions
from acpo.tasks.tabular import TabularCMDP

BATCH = 64
MANY = BATCH * 5000
"""Steps of runs that are not to end by themselves; one number, so that it is compiled once."""
SMALL: dict[str, Any] = {
    "rollout.envs": 8,
    "rollout.batch": BATCH,
    "network.hidden": (8,),
    "ppo.minibatch": 32,
    "ppo.passes": 2,
    # Stages of an iteration or two, so that a short run goes through all of them.
    "adversarial.explore": 1,
    "adversarial.max_reward": 2,
    "adversarial.min_cost": 1,
    "adversarial.projection": 2,
    "adversarial.tolerance": 100.0,
}
OPTIONS = RunOptions(plots=False, tensorboard=False, quiet=True)
EVERY = RunOptions(plots=False, tensorboard=False, quiet=True, checkpoint_every=1)


@functools.cache
def tabular() -> TabularCMDP:
    rng = np.random.default_rng(0)
    return TabularCMDP(
        transitions=rng.dirichlet(np.ones(3), size=(3, 2)),
        reward=rng.uniform(size=(3, 2)),
        costs=rng.uniform(size=(1, 3, 2)),
        initial=np.full(3, 1 / 3),
        horizon=4,
    )


def train(
    out: Path, task: Any = None, iterations: int = 8, options: RunOptions = OPTIONS, **more: Any
) -> Run:
    settings = {name.replace("__", "."): value for name, value in more.items()}
    settings = {"budget": 1.5, "steps": iterations * SMALL["rollout.batch"]} | SMALL | settings
    return acpo.train(tabular() if task is None else task, out=out, options=options, **settings)


def resume(out: Path, task: Any = None, options: RunOptions = OPTIONS, **more: Any) -> Run:
    return acpo.train(tabular() if task is None else task, resume=out, options=options, **more)


class Overflows(foreign_envs.Walk):
    """Its reward is finite until it is put into 32 bits, from the twentieth step on."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.total += 1
        return observation, 1e300 if self.total > 20 else reward, terminated, truncated, info


class Counting(progress.Silent):
    """Calls `then` at the end of the iteration `at` of this stretch of training."""

    def __init__(self, at: int, then: Any) -> None:
        self.at, self.then, self.seen = at, then, 0

    def show(self, snapshot: progress.Snapshot) -> None:
        self.seen += 1
        if self.seen == self.at:
            self.then()


@contextlib.contextmanager
def at_iteration(number: int, then: Any):
    """Within, trainings call `then` after their first `number` iterations."""
    before = progress.choose
    progress.choose = lambda *_: Counting(number, then)
    try:
        yield
    finally:
        progress.choose = before


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def interrupted(begin: Any, *arguments: Any, after: int, **keywords: Any) -> None:
    """`begin(…)` with Ctrl-C after so many iterations."""
    with at_iteration(after, interrupt), contextlib.suppress(KeyboardInterrupt):
        begin(*arguments, **keywords)
        raise AssertionError("nothing was interrupted")


def rows(path: Path) -> list[dict[str, str]]:
    """metrics.csv as text, without what depends on the machine."""
    with (path / "metrics.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if k not in TIMING} for row in csv.DictReader(file)]


def last(path: Path) -> Checkpoint:
    checkpoint, refused = Checkpoints(path / "checkpoints").newest()
    assert checkpoint is not None
    assert not refused
    return checkpoint


def assert_same_run(one: Path, other: Path) -> None:
    """The same metrics, text by text, and the same last state, bit by bit."""
    assert rows(one) == rows(other)
    assert_same_state(one, other)


def assert_same_state(one: Path, other: Path) -> None:
    first, second = last(one), last(other)
    assert first.iteration == second.iteration
    assert set(first.arrays) == set(second.arrays)
    assert any(name.startswith("state.policy") for name in first.arrays)
    for name, value in first.arrays.items():
        assert value.dtype == second.arrays[name].dtype, name
        assert value.tobytes() == second.arrays[name].tobytes(), name


if __name__ == "__main__":
    # What the tests that kill processes run: begin in a directory, or go on there.
    folder, iterations = Path(sys.argv[1]), int(sys.argv[2])
    if (folder / "config.yaml").exists():
        resume(folder, options=EVERY)
    else:
        train(folder, iterations=iterations, options=EVERY)
