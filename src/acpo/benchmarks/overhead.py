"""What keeping a run costs: the share of training time that logs, checkpoints and progress take.

A realistic run (PointGoal1, default settings, metrics.csv and TensorBoard, progress as lines) is timed
from its first to its last iteration; the first is left out of the time, because it is mostly
compilation and would flatter the share.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acpo import api
from acpo.runs import directory as directories
from acpo.runs import progress, simulators
from acpo.runs.session import RunOptions, Session

TASK = "PointGoal1"
BUDGET = 25.0


def run(
    steps: int = 120_000,
    algo: str = "acpo",
    task: str = TASK,
    emit: Callable[[str], None] = print,
    **changes: Any,
) -> dict[str, Any]:
    """Train once and report; emits a JSON line. `changes` are fields by dotted name."""
    plan = api.prepare(task, algo, changes={"budget": BUDGET, "steps": steps} | changes)
    built = simulators.build(plan.source, plan.config)
    with tempfile.TemporaryDirectory() as folder:
        directory = directories.create(Path(folder) / "run", plan.config, plan.source.spec)
        shown = progress.Plain(plan.source.spec)
        session = Session(directory, plan.config, built, plan.desired, RunOptions(), shown)
        session.run()
        table = api.load(directory.path).metrics
    first = float(table["seconds"][0])
    seconds = session.safe.seconds - first
    row = {
        "algo": algo,
        "task": task,
        "steps": plan.config.iterations * plan.config.rollout.batch,
        "seconds": round(seconds, 3),
        "overhead_seconds": round(session.overhead, 3),
        "save_seconds": round(session.save_cost, 3),
        "overhead": round(session.overhead / seconds, 5),
        "cores": len(os.sched_getaffinity(0)),
    }
    emit(json.dumps(row))
    return row


def table(row: dict[str, Any]) -> str:
    """One sentence."""
    return (
        f"{row['algo']} on {row['task']}: logs, checkpoints and progress took {row['overhead_seconds']:.2f} s"
        f" of {row['seconds']:.1f} s, {row['overhead']:.2%} (the last save {row['save_seconds']:.2f} s);"
        f" {row['steps']} steps on {row['cores']} cores."
    )
