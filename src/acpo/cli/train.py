"""`acpo train`."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from acpo import algorithms, api, configure
from acpo.cli import INTERRUPTED, arguments
from acpo.cli.arguments import Words
from acpo.config import Config
from acpo.errors import UserError
from acpo.runs import directory as directories
from acpo.runs.metrics import cost_column
from acpo.runs.session import RunOptions


@dataclass(frozen=True)
class Places:
    """Where a run goes and where its settings start from."""

    out: str = ""
    """Directory of the new run; by default runs/TASK-ALGO-seedN."""
    resume: str = ""
    """Go on with this run, from its last whole checkpoint; only --steps may change."""
    preset: str = "default"
    """`paper` starts from the paper's hyper-parameter tables."""


def main(argv: list[str]) -> int:
    hints = arguments.hints_of(Places, RunOptions, Config)
    try:
        words = arguments.parse(argv, hints, ("TASK",), "train")
    except arguments.HelpAsked:
        _help(argv)
        return 0
    places = arguments.make(Places, words.flags)
    options = arguments.make(RunOptions, words.flags)
    _check(options)
    changes = {name: value for name, value in words.flags.items() if name in configure.FIELDS}
    task = _task(words, changes, places)
    algo = changes.pop("algo", "acpo")
    if places.resume:
        return _resume(places, options, changes | ({"algo": algo} if "algo" in words.flags else {}), task)
    plan = api.prepare(task, algo, places.preset, changes)
    path = Path(places.out) if places.out else directories.fresh_path(task, algo, plan.config.seed)
    fresh = not path.exists()
    try:
        run = api.start_run(plan, path, options, task)
    except KeyboardInterrupt:
        return _interrupted(path)
    except UserError as error:
        if fresh and (path / "checkpoints").is_dir():
            raise UserError(f"{error} Go on with: acpo train --resume {path}") from error
        raise
    return _report(run)


def _resume(places: Places, options: RunOptions, changes: dict[str, Any], task: str) -> int:
    if places.out or places.preset != "default":
        raise UserError(
            "--resume goes on in the run's own directory with its own settings; leave out --out and --preset."
        )
    if task:
        changes["task"] = task
    try:
        run = api.continue_run(places.resume, changes, options)
    except KeyboardInterrupt:
        return _interrupted(Path(places.resume))
    return _report(run)


def _task(words: Words, changes: dict[str, Any], places: Places) -> str:
    named = [*words.positional, *([changes.pop("task")] if "task" in changes else [])]
    if len(named) > 1:
        raise UserError(f"Two tasks were given, {named[0]} and {named[1]}; a run has one.")
    if not named and not places.resume:
        raise UserError(
            "`acpo train` needs a task: acpo train PointGoal1 --budget 25 (`acpo list` names them)."
        )
    return named[0] if named else ""


def _check(options: RunOptions) -> None:
    if options.keep < 1:
        raise UserError(f"keep must be at least 1, not {options.keep}.")
    if options.checkpoint_every < 0:
        raise UserError(f"checkpoint_every must not be negative, but is {options.checkpoint_every}.")
    if options.wandb and importlib.util.find_spec("wandb") is None:
        raise UserError("--wandb needs the extra: pip install 'acpo[wandb]'.")


def _interrupted(path: Path) -> int:
    if not (path / "config.yaml").exists():
        print("acpo: interrupted before anything was written.", file=sys.stderr)
    else:
        print(f"acpo: interrupted; go on with: acpo train --resume {path}", file=sys.stderr)
    return INTERRUPTED


def _report(run: api.Run) -> int:
    """What came of it, and what to do next."""
    for sentence in run.refused:
        print(f"acpo: {sentence}", file=sys.stderr)
    for table in run.metrics.per_seed():
        parts = [f"seed {int(table['seed'][-1])}: reward {table['reward'][-10:].mean():.2f}"]
        for k, name in enumerate(run.spec.costs):
            mean = table[cost_column(name)][-10:].mean()
            limit = f" of {run.config.budget[k]:g}" if run.config.budget else ""
            parts.append(f"{name} {mean:.2f}{limit}")
        print(", ".join(parts) + " (mean of the last iterations)")
    print(f"Run: {run.path} (logs and checkpoints took {run.overhead:.1%} of the time)")
    if run.directory.plots.is_dir():
        print(f"Pictures: {run.directory.plots}")
    print(f"Next: acpo eval {run.path}")
    return 0


def _help(argv: list[str]) -> None:
    """The defaults shown are those of the algorithm and preset that are named beside --help."""

    def named(flag: str, default: str) -> str:
        joined = [w.partition("=")[2] for w in argv if w.startswith(f"{flag}=")]
        after = [b for a, b in itertools.pairwise(argv) if a == flag]
        return [default, *after, *joined][-1]

    algo, preset = named("--algo", "acpo"), named("--preset", "default")
    task = argv[0] if not argv[0].startswith("-") else "PointGoal1"
    config = configure.build(algo, task, preset=preset)
    read = ", ".join(algorithms.get(algo).sections)
    arguments.show_help(
        _page(),
        "acpo train TASK",
        f"Train {algo} on TASK (a name from `acpo list`, or package.module:factory). Costs and budgets are"
        f" undiscounted, per episode. Of the groups that only some algorithms read, {algo} reads: {read}.",
        _page()(Places(), RunOptions(), config),
    )


def _page() -> Any:
    """All flags as one dataclass, the groups of `Config` keeping their names."""
    import tyro  # noqa: PLC0415

    parts = (("places", Places), ("options", RunOptions), ("config", Config))
    plain = tyro.conf.arg(name="")
    return dataclasses.make_dataclass("Flags", [(name, Annotated[kind, plain]) for name, kind in parts])
