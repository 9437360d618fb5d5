"""What a person sees while training: a live view in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from acpo.problem import STAGE_NAMES
from acpo.tasks.base import TaskSpec

PLAIN_SECONDS = 5.0
"""Between lines where the output is not a terminal."""


@dataclass(frozen=True)
class Snapshot:
    """One moment of training. S seeds, K costs."""

    steps: int
    """per seed"""
    total: int
    steps_per_second: float
    """all seeds together"""
    seconds_left: float
    reward: np.ndarray
    """[S]"""
    costs: np.ndarray
    """[S, K]"""
    desired: np.ndarray
    """[K]"""
    budgets: np.ndarray
    """[S, K] d in force"""
    reward_budget: np.ndarray
    """[S] g"""
    stage: np.ndarray
    """[S]"""


class Progress(Protocol):
    def start(self) -> None: ...

    def show(self, snapshot: Snapshot) -> None: ...

    def stop(self) -> None: ...


class Silent:
    """For scripts that watch the metrics themselves."""

    def start(self) -> None: ...

    def show(self, snapshot: Snapshot) -> None: ...

    def stop(self) -> None: ...


class Plain:
    """A line every few seconds, and one for the last iteration."""

    def __init__(self, spec: TaskSpec) -> None:
        self._spec = spec
        self._shown = -np.inf
        self._last: Snapshot | None = None

    def start(self) -> None: ...

    def show(self, snapshot: Snapshot) -> None:
        self._last = snapshot
        if time.monotonic() - self._shown >= PLAIN_SECONDS:
            self._print()

    def stop(self) -> None:
        if self._last is not None:
            self._print()

    def _print(self) -> None:
        assert self._last is not None
        print(line(self._last, self._spec), flush=True)
        self._shown, self._last = time.monotonic(), None


class Terminal:
    """Redrawn in place, at most four times a second."""

    def __init__(self, title: str, spec: TaskSpec, console: Console) -> None:
        self._title, self._spec = title, spec
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._shown = -np.inf
        self._last: Snapshot | None = None

    def start(self) -> None:
        self._live.start()
        self._live.update(Text(f"{self._title}: compiling …"), refresh=True)

    def show(self, snapshot: Snapshot) -> None:
        self._last = snapshot
        if time.monotonic() - self._shown >= 0.25:
            self._live.update(view(self._title, snapshot, self._spec), refresh=True)
            self._shown = time.monotonic()

    def stop(self) -> None:
        if self._last is not None:
            self._live.update(view(self._title, self._last, self._spec), refresh=True)
        self._live.stop()


def choose(title: str, spec: TaskSpec, quiet: bool) -> Progress:
    if quiet:
        return Silent()
    console = Console()
    return Terminal(title, spec, console) if console.is_terminal and sys.stdout.isatty() else Plain(spec)


def line(now: Snapshot, spec: TaskSpec) -> str:
    """Everything in one line."""
    parts = [
        f"{now.steps / now.total:4.0%} of {quantity(now.total)} steps",
        f"{quantity(now.steps_per_second)} steps/s",
        f"{duration(now.seconds_left)} left",
        f"reward {now.reward.mean():.2f}",
    ]
    for k, name in enumerate(spec.costs):
        parts.append(f"{_label(name)} {now.costs[:, k].mean():.2f}/{_budget(now.desired[k])}")
    parts.append(stages(now))
    if np.isfinite(now.budgets).all() and len(spec.costs):
        parts.append("d " + " ".join(f"{d:.2f}" for d in now.budgets.mean(axis=0)))
    if now.reward_budget.any():
        parts.append(f"g {now.reward_budget.mean():.2f}")
    return ", ".join(parts)


def view(title: str, now: Snapshot, spec: TaskSpec) -> Any:
    """A progress bar over a small table."""
    head = Table.grid(padding=(0, 2))
    head.add_row(
        Text(title, style="bold"),
        ProgressBar(total=now.total, completed=now.steps, width=30),
        f"{quantity(now.steps)} / {quantity(now.total)} steps",
        f"{quantity(now.steps_per_second)} steps/s",
        f"{duration(now.seconds_left)} left",
    )
    body = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("", "measured", "desired", "budget now"):
        body.add_column(column, justify="left" if not column else "right")
    g = f"{now.reward_budget.mean():.2f}" if now.reward_budget.any() else ""
    body.add_row("reward", _spread(now.reward), "", g)
    for k, name in enumerate(spec.costs):
        kept = now.costs[:, k].mean() <= now.desired[k]
        body.add_row(
            _label(name),
            Text(_spread(now.costs[:, k]), style="green" if kept else "red"),
            _budget(now.desired[k]),
            _budget(now.budgets[:, k].mean()),
        )
    return Group(head, body, Text(f"stage: {stages(now)}", style="dim"))


def stages(now: Snapshot) -> str:
    """The stage of every seed: one name, or how many seeds are in which."""
    names = [STAGE_NAMES[int(stage)] for stage in now.stage]
    if len(set(names)) == 1:
        return names[0]
    return " ".join(f"{names.count(name)}×{name}" for name in STAGE_NAMES if name in names)


def quantity(number: float) -> str:
    """1234567 as 1.23M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def duration(seconds: float) -> str:
    """3725 seconds as 1:02:05."""
    if not np.isfinite(seconds):
        return "?"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def _label(name: str) -> str:
    return name if name.startswith("cost") else f"cost {name}"


def _budget(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "free"


def _spread(values: np.ndarray) -> str:
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{values.mean():.2f} ({values.min():.2f} … {values.max():.2f})"
