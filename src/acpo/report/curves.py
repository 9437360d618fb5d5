"""Pictures of runs: learning curves, the path of the budgets, the reward–cost plane."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import ScalarFormatter

from acpo.config import Config
from acpo.problem import STAGE_NAMES
from acpo.report import style
from acpo.runs.metrics import Table, cost_column
from acpo.tasks.base import TaskSpec

SMOOTH = 5
"""Iterations a learning curve is averaged over."""


@dataclass(frozen=True)
class Curve:
    """One line: the runs of one algorithm on one task, all their seeds together."""

    label: str
    tables: list[Table]
    """One per seed."""
    costs: tuple[str, ...]
    budgets: tuple[float, ...]

    def over_seeds(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """steps [T] and values [S, T] up to where the shortest seed got, smoothed."""
        length = min(len(table) for table in self.tables)
        values = np.stack([smooth(table[column][:length]) for table in self.tables])
        return self.tables[0]["steps"][:length], values


def smooth(values: np.ndarray, window: int = SMOOTH) -> np.ndarray:
    """Mean of each value and those before it, `window` at most; nothing looks ahead."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


def learning_curves(curves: list[Curve]) -> Figure:
    """Reward and every cost over steps: mean over seeds, band from lowest to highest seed, budget."""
    costs = _all_costs(curves)
    with style.styled():
        figure, axes = style.panels(1 + len(costs), columns=3)
        for axis, column in zip(axes, ["reward", *map(cost_column, costs)], strict=True):
            for k, curve in enumerate(curves):
                if column in curve.tables[0]:
                    steps, values = curve.over_seeds(column)
                    look = style.line_style(k)
                    marks = style.marks(k, len(curves), len(steps))
                    axis.plot(steps, values.mean(axis=0), label=style.wrap(curve.label), **look, **marks)
                    if len(values) > 1:
                        low, high = values.min(axis=0), values.max(axis=0)
                        axis.fill_between(steps, low, high, color=look["color"], alpha=0.15, linewidth=0)
            _label_steps(axis)
        axes[0].set_title("reward per episode")
        for axis, cost in zip(axes[1:], costs, strict=True):
            axis.set_title(f"{_cost_name(cost)} per episode")
            for budget in sorted(_budgets_of(curves, cost)):
                _budget_line(axis, budget)
            _keep_readable(axis, curves, cost)
        if len(curves) > 1:
            style.legend_below(figure, *axes[0].get_legend_handles_labels())
    return figure


def budget_path(
    table: Table,
    costs: tuple[str, ...],
    budgets: tuple[float, ...],
    title: str,
    still: np.ndarray | None = None,
) -> Figure | None:
    """How the budgets d and g moved in one seed, the stages shaded, the measured returns beside them;
    below that, if given, a picture [H, W, 3] of the policy at work. None where nothing is limited."""
    limited = [cost for cost in costs if np.isfinite(table[f"budget_{cost}"]).any()]
    if not limited:
        return None
    has_g = bool(np.any(table["reward_budget"] != 0))
    with style.styled():
        if still is None:
            figure, axes = style.panels(len(limited) + has_g, columns=3, width=4.2)
        else:
            figure, axes = style.panels_above(still, len(limited) + has_g, width=4.2)
        for axis, cost in zip(axes, limited, strict=False):
            _cost_path(axis, table, cost, budgets[costs.index(cost)] if budgets else np.inf)
        if has_g:
            _reward_path(axes[-1], table)
        for axis in axes:
            axis.grid(visible=False)
        style.legend_below(figure, *_path_legend(axes, table))
        figure.suptitle(title, fontsize=9)
    return figure


def _cost_path(axis: Any, table: Table, cost: str, budget: float) -> None:
    _shade_stages(axis, table)
    axis.plot(table["steps"], table[cost_column(cost)], color="#7a7a7a", linewidth=0.9, label="measured")
    look = style.line_style(1)
    axis.step(table["steps"], table[f"budget_{cost}"], where="post", label="budget d", **look)
    _budget_line(axis, budget)
    axis.set_title(f"{_cost_name(cost)} and its budget")
    axis.set_ylim(bottom=0)
    _label_steps(axis)


def _reward_path(axis: Any, table: Table) -> None:
    _shade_stages(axis, table)
    axis.plot(table["steps"], table["reward"], color="#7a7a7a", linewidth=0.9, label="measured")
    known = table["reward_budget"] != 0
    steps, g = table["steps"][known], table["reward_budget"][known]
    axis.step(steps, g, where="post", label="budget g", **style.line_style(2))
    axis.set_title("reward and its budget")
    _label_steps(axis)


def plane(points: list[tuple[str, np.ndarray, np.ndarray]], budget: float | None, cost: str) -> Figure:
    """Reward against one cost: a small mark per seed (arrays [S]), a large one for the mean, and
    the Pareto front of the means."""
    with style.styled():
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        axis = figure.subplots()
        means = np.array([(costs.mean(), rewards.mean()) for _, rewards, costs in points])
        front = pareto(means[:, 1], means[:, 0])
        order = front[np.argsort(means[front, 0])]
        if len(order) > 1:
            look: dict[str, Any] = {"color": "#9a9a9a", "linewidth": 1.0, "zorder": 1}
            axis.step(*means[order].T, where="post", label="Pareto front", **look)
        for k, (label, rewards, costs) in enumerate(points):
            look = style.mark_style(k)
            axis.scatter(costs, rewards, s=14, alpha=0.5, linewidth=0, **look)
            mean = [costs.mean()], [rewards.mean()]
            axis.scatter(*mean, s=70, edgecolor="white", zorder=3, label=style.wrap(label), **look)
        if budget is not None and np.isfinite(budget):
            axis.axvline(budget, color="#444444", linestyle=(0, (4, 3)), linewidth=1.0)
            axis.annotate(
                f"budget {budget:g}", (budget, 1), xytext=(0, 2), xycoords=("data", "axes fraction"),
                textcoords="offset points", fontsize=7, color="#444444", ha="center", va="bottom",
                annotation_clip=False,
            )  # fmt: skip
        axis.margins(0.08)
        axis.set_xlabel(f"{_cost_name(cost)} per episode")
        axis.set_ylabel("reward per episode")
        figure.legend(loc="outside right upper", fontsize=8)
    return figure


def pareto(rewards: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Indices of points that no other point beats in reward without more cost."""
    beaten = [
        np.any((rewards >= r) & (costs <= c) & ((rewards > r) | (costs < c)))
        for r, c in zip(rewards, costs, strict=True)
    ]
    return np.flatnonzero(~np.array(beaten))


def draw_run(metrics: Table, config: Config, spec: TaskSpec, folder: Path) -> list[Path]:
    """The pictures of one run: learning curves of its seeds, and the path of its budgets."""
    curve = Curve(config.algo, list(metrics.per_seed()), spec.costs, config.budget)
    written = style.save(learning_curves([curve]), folder, "learning")
    for seed in metrics.seeds:
        path = budget_path(
            metrics.seed(seed), spec.costs, config.budget, f"{config.algo} on {config.task}, seed {seed}"
        )
        if path is not None:
            written += style.save(path, folder, f"budgets_seed{seed}")
    return written


def _all_costs(curves: list[Curve]) -> list[str]:
    return list(dict.fromkeys(cost for curve in curves for cost in curve.costs))


def _budgets_of(curves: list[Curve], cost: str) -> set[float]:
    return {
        curve.budgets[curve.costs.index(cost)] for curve in curves if cost in curve.costs and curve.budgets
    }


def _cost_name(cost: str) -> str:
    return cost if cost.startswith("cost") else f"cost {cost}"


def _label_steps(axis: Any) -> None:
    axis.set_xlabel("environment steps")
    axis.ticklabel_format(axis="x", style="sci", scilimits=(0, 3))
    axis.margins(x=0)


def _budget_line(axis: Any, budget: float) -> None:
    """The desired budget, named beside the axis where no curve can cross the words."""
    if not np.isfinite(budget):
        return
    axis.axhline(budget, color="#444444", linestyle=(0, (4, 3)), linewidth=1.0)
    axis.annotate(
        f"budget\n{budget:g}", (1, budget), xytext=(3, 0), xycoords=("axes fraction", "data"),
        textcoords="offset points", fontsize=7, color="#444444", ha="left", va="center",
        annotation_clip=False,
    )  # fmt: skip


def _keep_readable(axis: Any, curves: list[Curve], cost: str) -> None:
    """An unlimited baseline may cost ten budgets; the others must not become one line beneath it."""
    highest = [
        curve.over_seeds(cost_column(cost))[1].mean(axis=0).max() for curve in curves if cost in curve.costs
    ]
    limit = max(_budgets_of(curves, cost), default=np.inf)
    if np.isfinite(limit) and limit > 0 and max(highest) > 8 * limit and min(highest) < 4 * limit:
        axis.set_yscale("symlog", linthresh=2 * limit)
        axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.set_ylim(bottom=0)


def _shade_stages(axis: Any, table: Table) -> None:
    """Grey behind the iterations of min-cost and, darker, of projection."""
    stage, steps = table["stage"], table["steps"]
    batch = steps[0]
    edges = np.flatnonzero(np.concatenate([[True], stage[1:] != stage[:-1], [True]]))
    for start, end in itertools.pairwise(edges):
        index = STAGE_NAMES.index(str(stage[start]))
        if index:
            axis.axvspan(
                steps[start] - batch, steps[end - 1], color=style.STAGE_SHADES[index], linewidth=0, zorder=0
            )


def _path_legend(axes: list[Any], table: Table) -> tuple[list[Any], list[str]]:
    """Every kind of line once, then the stages that occur."""
    lines = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    handles, labels = list(lines.values()), list(lines)
    occurred = [name for name in STAGE_NAMES if name in table["stage"]]
    for index, name in enumerate(STAGE_NAMES):
        if name in occurred and len(occurred) > 1:
            handles.append(Patch(facecolor=style.STAGE_SHADES[index], edgecolor="#7a7a7a", linewidth=0.5))
            labels.append(f"stage {name}")
    return handles, labels
