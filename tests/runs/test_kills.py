"""`kill -9` at random times: a run goes on from its last whole checkpoint and ends as if nothing had been.

A process takes seconds to start and then saves a checkpoint after every iteration of milliseconds,
so that most kills fall into the middle of one.
"""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny_runs
from tiny_runs import assert_same_run, resume, train

from acpo.runs.checkpoints import Checkpoints, read
from acpo.runs.disk import Lock

FEW = 200
"""Iterations: more than are reached before the last of a few kills."""


def newest(path: Path) -> int:
    return max((int(p.name) for p in Checkpoints(path / "checkpoints").paths()), default=0)


def start(path: Path, iterations: int, environment: dict[str, str]) -> subprocess.Popen:
    words = [sys.executable, tiny_runs.__file__, str(path), str(iterations)]
    return subprocess.Popen(words, env=environment, stderr=subprocess.PIPE)


def kill_at_random(path: Path, iterations: int, environment: dict[str, str], rng: random.Random) -> None:
    """Start or resume, and kill while it starts (one time in eight) or while it trains."""
    before = newest(path)
    child = start(path, iterations, environment)
    try:
        if rng.random() < 1 / 8:
            time.sleep(rng.uniform(0.1, 3))
        else:
            limit = time.monotonic() + 120
            while newest(path) <= before and time.monotonic() < limit:
                assert child.poll() is None, child.stderr.read().decode()
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.3))
        assert child.poll() is None, child.stderr.read().decode()
    finally:
        child.kill()
        child.wait()
    assert child.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("kills", "iterations"), [(5, FEW), pytest.param(50, 1200, marks=pytest.mark.long)])
def test_a_run_survives_being_killed(kills, iterations, place, environment):
    train(place / "whole", iterations=iterations)
    rng = random.Random(kills)
    halves = 0
    reached = [0]
    for _ in range(kills):
        kill_at_random(place / "killed", iterations, environment, rng)
        # Under its own name a checkpoint is whole at any moment, also while it is deleted.
        for path in Checkpoints(place / "killed" / "checkpoints").paths():
            read(path)
        halves += any((place / "killed" / "checkpoints").glob(".partial-*"))
        reached.append(newest(place / "killed"))
    assert reached == sorted(reached)
    assert reached[-1] < iterations
    print(f"{kills} kills, {halves} in the middle of a save, the last at iteration {reached[-1]}")
    if kills >= 50:
        assert halves >= 5
    resume(place / "killed")
    assert_same_run(place / "whole", place / "killed")
    assert not list((place / "killed" / "checkpoints").glob(".partial-*"))


def test_the_lock_dies_with_its_process(place, environment):
    child = start(place / "run", FEW, environment)
    try:
        while not newest(place / "run") and child.poll() is None:
            time.sleep(0.02)
        with pytest.raises(tiny_runs.acpo.UserError, match="Another process is training"):
            resume(place / "run")
    finally:
        child.kill()
        child.wait()
    Lock(place / "run").release()
