"""The paper's experiments: algorithms × tasks × seeds, trained, evaluated and compared.

Resumable: a run that is done is left alone, one that was cut short goes on from its last
checkpoint. What differs from a task's own settings is in each run's config.yaml.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acpo import api, configure
from acpo.cli import compare
from acpo.runs.session import RunOptions

NAVIGATION = ("PointGoal1", "CarGoal1", "PointCircle1", "CarCircle1")
ALGOS = ("acpo", "ipo", "ppo-lag", "cpo")


@dataclass(frozen=True)
class Plan:
    """What is trained, and how long."""

    tasks: tuple[str, ...] = NAVIGATION
    algos: tuple[str, ...] = ALGOS
    seeds: int = 3
    steps: int = 10_000_000
    """Environment steps per seed."""
    budget: float = 0.0
    """Desired cost of every cost; 0 takes 25 for navigation and the task's own elsewhere."""
    preset: str = "default"
    changes: tuple[tuple[str, Any], ...] = ()
    """Settings by dotted name, for every run that reads them."""


def settings(plan: Plan, task: str, algo: str) -> dict[str, Any]:
    changes: dict[str, Any] = {"seeds": plan.seeds, "steps": plan.steps}
    if plan.budget or task in NAVIGATION:
        changes["budget"] = plan.budget or 25.0
    return changes | {name: value for name, value in plan.changes if configure.is_read(algo, name)}


def train(plan: Plan, out: Path, options: RunOptions) -> list[Path]:
    """Train what is not trained yet; gives the run directories."""
    paths = []
    for task in plan.tasks:
        for algo in plan.algos:
            path = out / f"{task}-{algo}"
            paths.append(path)
            if (path / "config.yaml").exists():
                api.continue_run(path, {}, options)
            else:
                prepared = api.prepare(task, algo, plan.preset, settings(plan, task, algo))
                api.start_run(prepared, path, options, task)
    return paths


def evaluate(paths: Sequence[Path], episodes: int, emit: Callable[[str], None]) -> None:
    """Measure every run on fresh episodes, with the mean action and with sampled ones, as limits were
    measured in training; a line for each."""
    for path in paths:
        run = api.load(path)
        for actions in ("sampled", "mean"):
            result = api.evaluate(run, episodes, deterministic=actions == "mean")
            emit(
                json.dumps(
                    {
                        "task": run.config.task,
                        "algo": run.config.algo,
                        "seeds": run.config.seeds,
                        "steps": run.config.steps,
                        "episodes_per_seed": episodes,
                        "actions": actions,
                        "reward": result.reward._asdict(),
                        "costs": {name: cost._asdict() for name, cost in result.costs.items()},
                        "budgets": list(result.budgets),
                        "feasible": result.feasible,
                    }
                )
            )


def run(
    plan: Plan,
    out: Path,
    episodes: int = 100,
    options: RunOptions | None = None,
    emit: Callable[[str], None] = print,
) -> None:
    """Train, evaluate (not where `episodes` is 0) and compare: evaluation.jsonl, and pictures and a table
    for each task, go to `out`."""
    paths = train(plan, out, options or RunOptions())
    if not episodes:
        return
    lines: list[str] = []

    def keep(line: str) -> None:
        emit(line)
        lines.append(line)

    evaluate(paths, episodes, keep)
    (out / "evaluation.jsonl").write_text("\n".join(lines) + "\n")
    for task in plan.tasks:
        runs = [str(path) for path in paths if path.name.startswith(f"{task}-")]
        compare.main([*runs, "--out", str(out / f"comparison-{task}")])
