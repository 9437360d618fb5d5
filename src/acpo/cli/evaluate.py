"""`acpo eval`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from acpo import api
from acpo.cli import arguments


@dataclass(frozen=True)
class Options:
    """Fresh episodes, budgets and costs undiscounted per episode."""

    episodes: int = 100
    """Episodes for every seed of the run."""
    checkpoint: Literal["last", "best"] = "last"
    """`best` is the highest smoothed reward among policies that kept their budgets."""
    sampled: bool = False
    """Sample actions instead of taking the mean."""
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
    result = api.evaluate(run, options.episodes, not options.sampled, options.checkpoint, options.seed)
    for sentence in run.refused:
        print(f"acpo: {sentence}")
    print(f"{len(run.seeds)} × {options.episodes} episodes, {result.facts['interval']}")
    print(f"reward {result.reward}")
    for k, (name, estimate) in enumerate(result.costs.items()):
        limit = ""
        if result.budgets:
            limit = f", budget {result.budgets[k]:g}, over it in {result.over_budget[name]:.0%} of episodes"
        print(f"{name} {estimate}{limit}")
    if result.budgets:
        print("within budget" if result.feasible else "over budget")
    print(run.directory.evaluation)
    if options.video:
        from acpo.runs import simulators, video  # noqa: PLC0415

        source = simulators.find(run.task, run.config.backend)
        policy = run.policies(options.checkpoint)[0]
        for made in video.record(source, policy, Path(options.video), run.config.budget, options.seed):
            print(made)
    return 0
