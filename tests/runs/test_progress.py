"""What a person sees while training."""

import numpy as np
import pytest
from rich.console import Console

from acpo.runs import progress
from acpo.runs.progress import Plain, Silent, Snapshot, Terminal
from acpo.tasks.base import Box, TaskSpec

SPEC = TaskSpec("two", 3, Box(2), ("hazards", "cost_1"), 10)
NOW = Snapshot(
    steps=250_000,
    total=1_000_000,
    steps_per_second=12_345.0,
    seconds_left=3725.0,
    reward=np.array([10.0, 20.0]),
    costs=np.array([[20.0, 3.0], [24.0, 5.0]]),
    desired=np.array([25.0, np.inf]),
    budgets=np.array([[50.0, 1.0], [40.0, 2.0]]),
    reward_budget=np.array([7.0, 8.0]),
    stage=np.array([0, 1]),
)


def test_a_line_by_hand():
    assert progress.line(NOW, SPEC) == (
        " 25% of 1M steps, 12.3k steps/s, 1:02:05 left, reward 15.00, cost hazards 22.00/25,"
        " cost_1 4.00/free, 1×max-reward 1×min-cost, d 45.00 1.50, g 7.50"
    )


def test_the_view_shows_the_same():
    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(progress.view("acpo on two", NOW, SPEC))
    shown = console.export_text()
    for word in ("acpo on two", "250k / 1M steps", "12.3k steps/s", "1:02:05 left", "15.00 (10.00 … 20.00)"):
        assert word in shown
    for word in ("cost hazards", "22.00 (20.00 … 24.00)", "45", "1×max-reward 1×min-cost", "free"):
        assert word in shown


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (np.inf, "?")]
)
def test_durations(seconds, text):
    assert progress.duration(seconds) == text


def test_plain_lines_are_rare_and_the_last_is_never_missing(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    plain = Plain(SPEC)
    plain.start()
    for second in range(12):
        clock[0] = second
        plain.show(NOW)
    plain.stop()
    # At 0, 5 and 10 seconds, and the end.
    assert len(capsys.readouterr().out.splitlines()) == 4
    plain.stop()
    assert not capsys.readouterr().out


def test_what_is_not_a_terminal_gets_lines_and_quiet_gets_none(capsys):
    assert isinstance(progress.choose("", SPEC, quiet=True), Silent)
    assert isinstance(progress.choose("", SPEC, quiet=False), Plain)


def test_a_terminal_ends_with_the_last_state():
    console = Console(width=140, force_terminal=True, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    terminal = Terminal("acpo on two", SPEC, console)
    terminal.start()
    terminal.show(NOW)
    terminal.stop()
    assert "22.00 (20.00 … 24.00)" in console.export_text()
