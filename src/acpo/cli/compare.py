"""`acpo compare`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acpo import api
from acpo.cli import arguments
from acpo.errors import UserError
from acpo.report import curves, style, tables
from acpo.report.curves import Curve
from acpo.report.tables import Score
from acpo.runs import directory as directories
from acpo.runs.metrics import Table, cost_column

LAST = 0.1
"""Share of training, at its end, that stands for a run that was not evaluated."""


@dataclass(frozen=True)
class Options:
    """Tables and pictures of several runs; runs of one algorithm on one task count as its seeds."""

    out: str = "comparison"
    """Directory for table.md, table.json and the pictures (PNG and SVG)."""
    apart: bool = False
    """Show every run on its own, under its directory's name."""


def main(argv: list[str]) -> int:
    try:
        words = arguments.parse(argv, arguments.hints_of(Options), ("RUN…",), "compare")
    except arguments.HelpAsked:
        arguments.show_help(
            Options, "acpo compare RUN…", "Compare runs: means with intervals, curves, plane."
        )
        return 0
    arguments.need(words, 0, "at least one run", "compare", "runs/PointGoal1-acpo-seed0 …")
    options = arguments.make(Options, words.flags)
    runs = [api.load(path) for path in dict.fromkeys(words.positional)]
    groups = group(runs, options.apart)
    # Whatever is wrong with a run is found before anything is written.
    measured = {run.path: training(run) for run in runs}
    scores = [score(label, members, measured) for label, members in groups.items()]
    markdown = tables.to_markdown(scores)
    folder = Path(options.out)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; --out needs a directory.")
    try:
        pictures = draw(groups, scores, measured, folder)
        directories.write_atomically(folder / "table.md", markdown + "\n")
        directories.write_atomically(folder / "table.json", tables.to_json(scores) + "\n")
    except OSError as error:
        raise UserError(f"Cannot write to {folder}: {error.strerror or error}.") from error
    print(tables.aligned(markdown))
    print("\n".join(str(path) for path in (folder / "table.md", *pictures)))
    return 0


def group(runs: list[api.Run], apart: bool) -> dict[str, list[api.Run]]:
    """Runs by the label they are shown under."""
    several = len({run.config.task for run in runs}) > 1
    groups: dict[str, list[api.Run]] = {}
    for run in runs:
        label = f"{run.config.algo} {run.config.task}" if several else run.config.algo
        label = run.path.name if apart else label
        groups.setdefault(label, []).append(run)
    for label, members in groups.items():
        if len({(run.config.task, run.config.budget) for run in members}) > 1:
            raise UserError(f"The runs of {label} have different tasks or budgets; use --apart.")
    return groups


def training(run: api.Run) -> Table:
    """The metrics of a run, as complete as pictures need them."""
    table, path = run.metrics, run.directory.metrics
    needed = ["steps", "stage", "reward_budget", *map(cost_column, run.spec.costs)]
    needed += [f"budget_{name}" for name in run.spec.costs]
    if missing := [name for name in needed if name not in table]:
        raise UserError(f"{path} is not the metrics of this run: it has no column '{missing[0]}'.")
    if table.seeds != run.seeds:
        raise UserError(
            f"{path} is not the metrics of this run: its seeds are {table.seeds}, not {run.seeds}."
        )
    return table


def score(label: str, runs: list[api.Run], measured: dict[Path, Table]) -> Score:
    """From evaluations where every run has one, else from the end of training."""
    spec, config = runs[0].spec, runs[0].config
    if all(run.directory.evaluation.exists() for run in runs):
        found = [_evaluated(run) for run in runs]
        source = "evaluation"
    else:
        found = [_trained(run, measured[run.path]) for run in runs]
        source = f"last {LAST:.0%} of training"
    signals = np.concatenate(found)
    costs = {name: signals[:, 1 + k] for k, name in enumerate(spec.costs)}
    return Score(label, config.task, source, signals[:, 0], costs, config.budget)


def _evaluated(run: api.Run) -> np.ndarray:
    """[S, 1 + K] mean of each seed's episodes."""
    path = run.directory.evaluation
    try:
        episodes = json.loads(path.read_text())["episodes"]
        signals = np.array([_means(seed) for seed in episodes], np.float64)
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path} is not an evaluation; make it again with: acpo eval {run.path}") from None
    if signals.shape != (len(run.seeds), 1 + len(run.spec.costs)):
        raise UserError(f"{path} is of another run; make it again with: acpo eval {run.path}")
    return signals


def _means(seed: dict[str, Any]) -> list[float]:
    """[1 + K] over the episodes of one seed."""
    episodes = len(seed["reward"])
    if not episodes:
        raise ValueError
    return [float(np.mean(seed["reward"])), *np.mean(np.reshape(seed["costs"], (episodes, -1)), axis=0)]


def _trained(run: api.Run, table: Table) -> np.ndarray:
    """[S, 1 + K]"""
    columns = ["reward", *map(cost_column, run.spec.costs)]
    seeds = list(table.per_seed())
    return np.array([[t[c][-max(1, round(LAST * len(t))) :].mean() for c in columns] for t in seeds])


def draw(
    groups: dict[str, list[api.Run]], scores: list[Score], measured: dict[Path, Table], folder: Path
) -> list[Path]:
    """Learning curves and plane per task, the path of the budgets per label."""
    written: list[Path] = []
    tasks = list(dict.fromkeys(score.task for score in scores))
    for task in tasks:
        suffix = "" if len(tasks) == 1 else f"_{task.replace(':', '.').replace('/', '.')}"
        here = {label: runs for label, runs in groups.items() if runs[0].config.task == task}
        lines = [
            Curve(
                label,
                [table for run in runs for table in measured[run.path].per_seed()],
                runs[0].spec.costs,
                runs[0].config.budget,
            )
            for label, runs in here.items()
        ]
        written += style.save(curves.learning_curves(lines), folder, f"learning{suffix}")
        for label, runs in here.items():
            seed = runs[0].seeds[0]
            path = curves.budget_path(
                measured[runs[0].path].seed(seed), runs[0].spec.costs, runs[0].config.budget,
                f"{label} on {task}, seed {seed}",
            )  # fmt: skip
            if path is not None:
                written += style.save(path, folder, f"budgets_{label.replace(' ', '_').replace(':', '.')}")
        for k, cost in enumerate(lines[0].costs):
            points = [
                (s.label, s.reward, s.costs[cost]) for s in scores if s.task == task and cost in s.costs
            ]
            budget = next((s.budgets[k] for s in scores if s.task == task and s.budgets), None)
            name = "plane" if len(lines[0].costs) == 1 else f"plane_{cost}"
            written += style.save(curves.plane(points, budget, cost), folder, f"{name}{suffix}")
    return written
