"""`acpo export`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from acpo import api
from acpo.cli import arguments
from acpo.errors import UserError
from acpo.export import export


@dataclass(frozen=True)
class Options:
    """Raw observations in, the deterministic action out."""

    checkpoint: Literal["last", "best"] = "last"
    """`best` is the highest smoothed reward among policies that kept their budgets."""
    seed: int = -1
    """Which seed of the run; by default its first."""


def main(argv: list[str]) -> int:
    try:
        words = arguments.parse(argv, arguments.hints_of(Options), ("RUN", "FILE"), "export")
    except arguments.HelpAsked:
        arguments.show_help(
            Options, "acpo export RUN FILE.onnx", "Write a trained policy as ONNX, checked by onnxruntime."
        )
        return 0
    example = "runs/PointGoal1-acpo-seed0 policy.onnx"
    path = arguments.need(words, 0, "a run", "export", example)
    target = Path(arguments.need(words, 1, "a file to write", "export", example))
    options = arguments.make(Options, words.flags)
    run = api.load(path)
    seed = run.seeds[0] if options.seed < 0 else options.seed
    if seed not in run.seeds:
        raise UserError(f"This run has the seeds {', '.join(map(str, run.seeds))}, not {seed}.")
    policies = run.policies(options.checkpoint)
    for sentence in run.refused:
        print(f"acpo: {sentence}", file=sys.stderr)
    difference = export(policies[run.seeds.index(seed)], target)
    print(f"{target} (onnxruntime and the trained policy differ by at most {difference:.1e})")
    return 0
