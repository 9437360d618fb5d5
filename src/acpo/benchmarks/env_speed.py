"""How fast the navigation tasks run, beside bare MuJoCo and beside the original, in one run.

Machines are shared and noisy, so the contestants take turns, round after round, and ratios are
formed within a round. Every number is environment steps per second on all CPUs the process may
use: `ours` is the batched task with observations, rewards, costs and resets; `make_vec` the same
through Gymnasium; `bare` and `bare_sleep` are `mujoco.batch` stepping the same model with nothing
around it, without and with MuJoCo's sleeping of resting bodies; `reference` is Safety-Gymnasium in
one process per CPU, whole episodes with their resets.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import mujoco.batch
import numpy as np
from rich.console import Console
from rich.table import Table

from acpo.errors import UserError
from acpo.physics.native import NativePhysics, available_threads
from acpo.tasks.navigation import make, rules
from acpo.tasks.navigation.host import NavigationTask
from acpo.tasks.navigation.model import build_model

TASKS = ("PointGoal1", "CarGoal1", "PointCircle1", "CarCircle1")
ACTIONS = 64
"""Batches of random actions, drawn beforehand and used in turn."""

# Steps one environment for whole episodes; answers each line on stdin with steps and seconds.
REFERENCE = """
import sys, time
import safety_gymnasium
env = safety_gymnasium.make(sys.argv[1])
env.reset(seed=int(sys.argv[2]))
actions = [env.action_space.sample() for _ in range(1000)]
print("ready", flush=True)
for line in sys.stdin:
    start, steps, over = time.perf_counter(), 0, False
    env.reset()
    while not over:
        *_, terminated, truncated, _ = env.step(actions[steps])
        steps, over = steps + 1, terminated or truncated
    print(steps, time.perf_counter() - start, flush=True)
"""

Contestant = Callable[[float], float]
"""Runs for about so many seconds and gives its steps per second."""


def parts(task: str) -> tuple[str, str, int]:
    """("Point", "Goal", 1) from "PointGoal1"."""
    robot = "Point" if task.startswith("Point") else "Car"
    return robot, task[len(robot) : -1], int(task[-1])


def repeated(advance: Callable[[int], None], num_envs: int) -> Contestant:
    def run(seconds: float) -> float:
        start, count = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < seconds:
            for _ in range(8):
                advance(count)
                count += 1
        return count * num_envs / elapsed

    return run


def ours(task: str, num_envs: int) -> Contestant:
    robot, goal, level = parts(task)
    made = make(num_envs, "native", robot=robot, goal=goal, level=level)
    assert isinstance(made, NavigationTask)
    made.reset(0)
    actions = random_actions(num_envs)
    return repeated(lambda i: ignore(made.step(actions[i % ACTIONS])), num_envs)


def make_vec(task: str, num_envs: int) -> Contestant:
    env = gymnasium.make_vec(f"acpo/{task}-v0", num_envs=num_envs, random_phases=True)
    env.reset(seed=0)
    actions = random_actions(num_envs)
    return repeated(lambda i: ignore(env.step(actions[i % ACTIONS])), num_envs)


def bare(task: str, num_envs: int, sleep: bool) -> Contestant:
    """`mujoco.batch` alone, from the same starts, with the same controls and no resets."""
    chosen = rules(*parts(task))
    model = build_model(chosen.robot, chosen.game.vases, chosen.game.vases_cost)
    if sleep:
        model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_ISLAND)  # sleep goes by islands
    start = make(num_envs, "native", robot=chosen.robot.name, goal=chosen.game.name, level=chosen.game.level)
    assert isinstance(start, NavigationTask)
    start.reset(0)
    physics = NativePhysics(model, num_envs, chosen.robot.substeps, persistent=sleep)
    begin = start.physics.state()
    physics.set_state(np.arange(num_envs), np.asarray(begin.qpos), np.asarray(begin.qvel))
    batch, ctrl = physics.batch, physics.batch.bind("ctrl")
    actions = random_actions(num_envs)

    def advance(i: int) -> None:
        ctrl[:] = actions[i % ACTIONS]
        batch.step(nstep=chosen.robot.substeps, stage=mujoco.mjtStage.mjSTAGE_ACC.value)

    return repeated(advance, num_envs)


class Reference:
    """Safety-Gymnasium in one process per CPU; a turn is one episode in each."""

    def __init__(self, python: Path, task: str) -> None:
        command = [str(python), "-c", REFERENCE, f"Safety{task}-v0"]
        self._workers = [
            subprocess.Popen(
                [*command, str(i)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for i in range(available_threads())
        ]
        for worker in self._workers:
            self._answer(worker, "ready")

    @staticmethod
    def _answer(worker: subprocess.Popen[str], wanted: str = "") -> str:
        assert worker.stdout is not None
        while line := worker.stdout.readline():
            if wanted in line:
                return line
        raise UserError("Safety-Gymnasium did not start; was its environment made by the installer?")

    def __call__(self, seconds: float) -> float:
        for worker in self._workers:
            assert worker.stdin is not None
            print(file=worker.stdin, flush=True)
        return sum(
            float(steps) / float(taken)
            for steps, taken in (self._answer(worker).split() for worker in self._workers)
        )

    def close(self) -> None:
        for worker in self._workers:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait()


def measure(
    task: str, *, num_envs: int, vector_envs: int, rounds: int, seconds: float, peers: Path | None
) -> dict[str, Any]:
    """One task: every contestant in turn, `rounds` times over."""
    contestants: dict[str, Contestant] = {
        "ours": ours(task, num_envs),
        "make_vec": make_vec(task, vector_envs),
        "bare": bare(task, num_envs, sleep=False),
        "bare_sleep": bare(task, num_envs, sleep=True),
    }
    reference = Reference(peers, task) if peers else None
    if reference:
        contestants["reference"] = reference
    for contestant in (contestants["ours"], contestants["make_vec"]):
        contestant(0.5)  # compile, and reach the share of resets that goes on
    table = {name: np.zeros(rounds) for name in contestants}
    for i in range(rounds):
        for name, contestant in contestants.items():
            table[name][i] = contestant(seconds)
    if reference:
        reference.close()
    best_bare = np.maximum(table["bare"], table["bare_sleep"])
    row: dict[str, Any] = {"task": task, "num_envs": num_envs, "make_vec_envs": vector_envs}
    row |= {"threads": available_threads(), "rounds": rounds}
    for name, values in table.items():
        row[name] = round(float(np.median(values)))
        row[f"{name}_best"] = round(float(values.max()))
    row["share_of_bare"] = round(float(np.median(table["ours"] / table["bare"])), 3)
    row["share_of_best_bare"] = round(float(np.median(table["ours"] / best_bare)), 3)
    if reference:
        row["times_reference"] = round(float(np.median(table["ours"] / table["reference"])), 1)
    return row


def run(
    tasks: Sequence[str] = TASKS,
    *,
    num_envs: int = 512,
    vector_envs: int = 128,
    rounds: int = 5,
    seconds: float = 2.0,
    peers: Path | None = None,
    out: Path | None = None,
) -> list[dict[str, Any]]:
    """Measure `tasks`, print a JSON line for each and a table of all, and append the lines to `out`.

    `peers` is the Python of an environment in which Safety-Gymnasium is installed; without it the
    original is left out.
    """
    for task in tasks:
        if task not in TASKS:
            raise UserError(f"The speed of '{task}' cannot be measured here; known are: {', '.join(TASKS)}.")
    if peers is not None and not peers.exists():
        raise UserError(f"There is no Python at {peers}.")
    rows = []
    for task in tasks:
        row = measure(
            task, num_envs=num_envs, vector_envs=vector_envs, rounds=rounds, seconds=seconds, peers=peers
        )
        rows.append(row)
        line = json.dumps(row)
        print(line, flush=True)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a") as file:
                print(line, file=file)
    Console(width=120).print(summary(rows))
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> Table:
    """Medians over the rounds, in environment steps per second."""
    table = Table(title="Environment steps per second (median of the rounds)")
    columns = {
        "task": "task",
        "ours": "ours",
        "make_vec": "make_vec",
        "bare": "bare batch",
        "bare_sleep": "with sleep",
        "reference": "reference",
        "share_of_best_bare": "of best bare",
        "times_reference": "times reference",
    }
    for heading in columns.values():
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for row in rows:
        table.add_row(*(str(row.get(name, "-")) for name in columns))
    return table


def random_actions(num_envs: int) -> np.ndarray:
    """[64, B, 2] uniform in ±1."""
    return np.random.default_rng(0).uniform(-1.0, 1.0, (ACTIONS, num_envs, 2))


def ignore(_: object) -> None:
    """Takes what a step returns, so that a lambda may end with it."""
