"""`acpo eval`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from acpo import api
from acpo.cli import arguments
from acpo.runs.evaluation import Evaluation


@dataclass(frozen=True)
class Options:
    """Fresh episodes; reward and costs are undiscounted sums per episode, as budgets are."""

    episodes: int = 100
    """Episodes for every seed of the run."""
    checkpoint: Literal["last", "best"] = "last"
    """`best` is the highest smoothed reward among policies that kept their budgets."""
    sampled: bool = False
    """Sample actions, as in training, instead of taking the mean (or the likeliest)."""
    seed: int = 0
    """Another number means other episodes."""
    video: str = ""
    """Also film the first seed's policy, to this mp4 file and a png beside it."""


def main(argv: list[str]) -> int:
    try:
        words = arguments.parse(argv, arguments.hints_of(Options), ("RUN",), "eval")
    except arguments.HelpAsked:
        arguments.show_help(
            Options, "acpo eval RUN", "Measure a trained policy; writes evaluation.json in the run."
        )
        return 0
    path = arguments.need(words, 0, "a run", "eval", "runs/PointGoal1-acpo-seed0")
    options = arguments.make(Options, words.flags)
    run = api.load(path)
    if options.video:
        from acpo.runs import simulators, video  # noqa: PLC0415

        video.check(source := simulators.find(run.task, run.config.backend), Path(options.video))
    result = api.evaluate(run, options.episodes, not options.sampled, options.checkpoint, options.seed)
    for sentence in run.refused:
        print(f"acpo: {sentence}", file=sys.stderr)
    print("\n".join(summary(result, len(run.seeds))))
    print(f"Numbers: {run.directory.evaluation}")
    if options.video:
        policy = run.policies(options.checkpoint)[0]
        film = video.record(source, policy, Path(options.video), run.config.budget, options.seed)
        if film.note:
            print(f"acpo: {film.note}", file=sys.stderr)
        print(f"Video: {film.video}\nStill: {film.still}")
    return 0


def summary(result: Evaluation, seeds: int) -> list[str]:
    """What was measured and how, a line for each signal."""
    facts = result.facts
    number = facts["episodes_per_seed"]
    episodes = f"{number} fresh episode" + ("" if number == 1 else "s")
    many = f" for each of {seeds} seeds" if seeds > 1 else ""
    actions = "mean" if facts["deterministic"] else "sampled"
    lines = [f"{episodes}{many}, {actions} actions (mean [{facts['interval']}])"]
    width = max(map(len, ("reward", *result.costs)))
    lines.append(f"  {'reward':<{width}}  {result.reward}")
    for k, (name, estimate) in enumerate(result.costs.items()):
        limit = ""
        if result.budgets:
            limit = f"  budget {result.budgets[k]:g}, over it in {result.over_budget[name]:.0%} of episodes"
        lines.append(f"  {name:<{width}}  {estimate}{limit}")
    if result.budgets:
        over = [
            name for (name, e), budget in zip(result.costs.items(), result.budgets, strict=True)
            if e.mean > budget
        ]  # fmt: skip
        lines.append("within budget" if result.feasible else f"over budget on average: {', '.join(over)}")
    return lines
