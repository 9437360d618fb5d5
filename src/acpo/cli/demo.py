"""`acpo demo`: ACPO on PointCircle1, short enough to watch."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acpo import api
from acpo.cli import arguments
from acpo.report import curves
from acpo.runs import directory as directories
from acpo.runs import simulators, video
from acpo.runs.progress import duration
from acpo.runs.session import RunOptions

TASK, BUDGET, EPISODES = "PointCircle1", 25.0, 50
SETTINGS = {"adversarial.explore": 5}
"""Ten iterations of exploring are long in a run of sixty."""


@dataclass(frozen=True)
class Options:
    """A run of about a minute on two cores."""

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
    result = api.evaluate(run, episodes=EPISODES)
    (cost,) = result.costs.values()
    seconds = run.metrics["seconds"][-1]
    print(
        f"\n{plan.config.steps:,} steps in {duration(seconds)}. The policy on {EPISODES} fresh episodes",
        end="",
    )
    print(" (mean [95 % interval]):")
    print(f"  reward {result.reward}")
    print(f"  cost   {cost}  budget {BUDGET:g}: {'kept' if result.feasible else 'not kept yet'}")
    film = video.record(simulators.find(TASK), run.policies()[0], run.path / "video.mp4", run.config.budget)
    overview = picture(run, film.still)
    print("Pictures:")
    for path in (overview, film.video, *sorted(run.directory.plots.glob("*.png"))):
        print(f"  {path}")
    if film.note:
        print(f"acpo: {film.note}", file=sys.stderr)
    print(
        f"Next: acpo eval {run.path}, or your own: acpo train PointGoal1 --budget 25 (`acpo list` has more)"
    )
    return 0


def picture(run: api.Run, still: Path) -> Path:
    """demo.png: the path of cost, reward and budgets over three episodes of what came of it."""
    import imageio.v2 as imageio  # noqa: PLC0415

    title = f"ACPO on {TASK}, {run.config.steps:,} steps\nbelow: three episodes of the trained policy"
    figure = curves.budget_path(
        run.metrics, run.spec.costs, run.config.budget, title, np.asarray(imageio.imread(still))
    )
    assert figure is not None
    path = run.path / "demo.png"
    figure.savefig(path, dpi=120)
    return path
