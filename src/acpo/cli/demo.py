"""`acpo demo`: ACPO on PointCircle1, short enough to watch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from acpo import api
from acpo.cli import arguments
from acpo.runs import directory as directories
from acpo.runs import simulators, video
from acpo.runs.session import RunOptions

TASK, BUDGET = "PointCircle1", 25.0
SETTINGS = {"ppo.minibatch": 1000, "ppo.passes": 20, "ppo.learning_rate": 1e-3, "adversarial.explore": 5}
"""Larger minibatches than the paper's: fewer, bigger gradient steps suit a run this short."""


@dataclass(frozen=True)
class Options:
    """A run of about two minutes on two cores."""

    steps: int = 1_200_000
    """Environment steps."""
    out: str = ""
    """Directory of the run; by default a new one under runs/."""


def main(argv: list[str]) -> int:
    try:
        words = arguments.parse(argv, arguments.hints_of(Options), (), "demo")
    except arguments.HelpAsked:
        arguments.show_help(Options, "acpo demo", "Train ACPO on PointCircle1 under a cost budget of 25.")
        return 0
    options = arguments.make(Options, words.flags)
    plan = api.prepare(TASK, "acpo", changes={"budget": BUDGET, "steps": options.steps, **SETTINGS})
    path = Path(options.out) if options.out else directories.fresh_path("demo", "acpo", 0)
    print(
        f"ACPO on {TASK}: run in circles, fast, but cross the walls for at most {BUDGET:g} steps an episode."
    )
    run = api.start_run(plan, path, RunOptions(), TASK)
    result = api.evaluate(run, episodes=50)
    (cost,) = result.costs.values()
    print(f"\nAfter {plan.config.steps:,} steps, over 50 fresh episodes (mean [95 % interval]):")
    print(f"  reward {result.reward}")
    print(f"  cost   {cost}  budget {BUDGET:g}: {'kept' if result.feasible else 'not kept yet'}")
    film, still = video.record(
        simulators.find(TASK), run.policies()[0], run.path / "video.mp4", run.config.budget
    )
    print("Pictures:")
    for picture in (*sorted(run.directory.plots.glob("*.png")), still, film):
        print(f"  {picture}")
    return 0
