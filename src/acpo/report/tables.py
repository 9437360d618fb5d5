"""The table of a comparison: every algorithm's reward and costs with intervals, and whether it
kept its budgets."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from acpo.report.statistics import bootstrap_interval, interquartile_mean


@dataclass(frozen=True)
class Score:
    """What one algorithm came to on one task; S seeds of all its runs, K costs."""

    label: str
    task: str
    source: str
    """"evaluation" or "training": where the numbers are from"""
    reward: np.ndarray
    """[S]"""
    costs: dict[str, np.ndarray]
    """[S] by name"""
    budgets: tuple[float, ...]

    @property
    def feasible_seeds(self) -> np.ndarray:
        """[S] bool: mean cost within the budget, for every cost."""
        kept = np.ones(len(self.reward), bool)
        for values, budget in zip(self.costs.values(), self.budgets, strict=False):
            kept &= values <= budget
        return kept

    @property
    def feasible(self) -> bool:
        """Whether the mean over seeds is within every budget."""
        return all(
            values.mean() <= budget for values, budget in zip(self.costs.values(), self.budgets, strict=False)
        )


def as_dict(score: Score) -> dict[str, object]:
    def summary(values: np.ndarray) -> dict[str, object]:
        low, high = bootstrap_interval(values)
        return {
            "mean": float(values.mean()),
            "low": low,
            "high": high,
            "iqm": interquartile_mean(values),
            "worst": float(values.max()),
            "seeds": values.tolist(),
        }

    return {
        "label": score.label,
        "task": score.task,
        "source": score.source,
        "reward": summary(score.reward) | {"worst": float(score.reward.min())},
        "costs": {name: summary(values) for name, values in score.costs.items()},
        "budgets": dict(zip(score.costs, score.budgets, strict=False)),
        "feasible": score.feasible,
        "feasible_seeds": int(score.feasible_seeds.sum()),
    }


def to_json(scores: list[Score]) -> str:
    return json.dumps([as_dict(score) for score in scores], indent=1)


def to_markdown(scores: list[Score]) -> str:
    """Mean [95 % bootstrap interval over seeds] and interquartile mean, one row per algorithm."""
    names = list(dict.fromkeys(name for score in scores for name in score.costs))
    head = ["task", "run", "seeds", "reward", "IQM"]
    for name in names:
        head += [f"{name if name.startswith('cost') else 'cost ' + name}", "IQM", "budget"]
    head += ["kept by", "measured in"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for score in scores:
        cells = [score.task, score.label, str(len(score.reward)), *_cells(score.reward)]
        for k, name in enumerate(names):
            if name not in score.costs:
                cells += ["", "", ""]
                continue
            budget = f"{score.budgets[k]:g}" if k < len(score.budgets) else "none"
            cells += [*_cells(score.costs[name]), budget]
        kept = f"{int(score.feasible_seeds.sum())} of {len(score.reward)}" if score.budgets else "no budget"
        lines.append("| " + " | ".join([*cells, kept, score.source]) + " |")
    return "\n".join(lines)


def aligned(markdown: str) -> str:
    """The same table with its columns lined up, for a terminal."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines()]
    widths = [max(len(row[k]) for row in rows if not row[k].startswith("---")) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        rule = row[0].startswith("---")
        lines.append(
            "  ".join(
                "─" * w if rule else cell.ljust(w) for cell, w in zip(row, widths, strict=True)
            ).rstrip()
        )
    return "\n".join(lines)


def _cells(values: np.ndarray) -> list[str]:
    low, high = bootstrap_interval(values)
    mean = f"{values.mean():.2f}"
    return [
        mean if len(values) == 1 else f"{mean} [{low:.2f}, {high:.2f}]",
        f"{interquartile_mean(values):.2f}",
    ]
