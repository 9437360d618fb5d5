"""Ctrl-C and SIGTERM as a person and a batch system send them: to a process of the command line."""

import signal
import subprocess
import sys
import time

import pytest
from tiny_runs import MANY, interrupt, last, rows, train

from acpo.runs.interruptions import Interruptions

MAIN = [sys.executable, "-c", "import sys; from acpo.cli import main; sys.exit(main())", "train"]


@pytest.mark.parametrize(
    ("kind", "times", "begun"),
    [(signal.SIGTERM, 1, True), (signal.SIGINT, 3, True), (signal.SIGINT, 1, False)],
    ids=["SIGTERM", "three times Ctrl-C", "Ctrl-C before the first iteration"],
)
def test_signals_end_the_command_line_with_130_and_how_to_go_on(kind, times, begun, place, environment):
    path = place / "run"
    train(path, "Tabular", 1)
    words = [*MAIN, f"--resume={path}", f"--steps={MANY}", "--no-plots", "--quiet"]
    child = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        # The logs are opened when a session begins; then the first iteration is compiled.
        # A row is written just before its iteration counts: with six, five are done.
        while len(rows(path)) < 6 if begun else not list(path.glob("tensorboard/*/*")):
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.005)
        for _ in range(times):
            child.send_signal(kind)
            time.sleep(0.01)
        said = child.communicate(timeout=120)[1]
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 130
    assert said.strip() == f"acpo: interrupted; go on with: acpo train --resume {path}"
    done = last(path).iteration
    assert len(rows(path)) in (done, done + 1)
    assert done >= 5 if begun else done < 5


def test_the_first_signal_interrupts_and_later_ones_do_not():
    interruptions = Interruptions()
    with interruptions.listening():
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            interruptions.check()
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_a_held_signal_waits_for_the_check():
    interruptions = Interruptions()
    with interruptions.listening():
        interruptions.check()
        with interruptions.held(), interruptions.held():
            interrupt()
        with pytest.raises(KeyboardInterrupt):
            interruptions.check()
