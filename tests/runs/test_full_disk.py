"""A disk that fills up while training: one sentence, nothing before it lost, and on when there is room."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_runs import MANY, OPTIONS, assert_same_run, at_iteration, last, resume, rows, train

from acpo import UserError
from acpo.runs.checkpoints import Checkpoints, read
from acpo.runs.metrics import CsvLog, EventLog
from acpo.runs.session import RunOptions

ALL = RunOptions(plots=False, quiet=True, checkpoint_every=1)


MAIN = [sys.executable, "-c", "import sys; from acpo.cli import main; sys.exit(main())", "train"]


def fill(disk: Path) -> Path:
    """Take the last byte of a file system."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return ballast


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    train(path)
    return path


def check_and_go_on(path: Path, whole: Path, at_least: int) -> None:
    """What is there is whole, and with room again the run ends as if the disk had never been full."""
    found = Checkpoints(path / "checkpoints").paths()
    assert max(int(p.name) for p in found) >= at_least
    for checkpoint in found:
        read(checkpoint)
    resume(path, options=OPTIONS)
    assert_same_run(whole, path)


@pytest.mark.parametrize("tensorboard", [False, True])
def test_a_disk_that_fills_up_between_iterations(tensorboard, whole, small_disk):
    disk = small_disk(4096)
    if disk is None:
        pytest.skip("no mounting here: the next two tests do it by injection")
    options = RunOptions(plots=False, quiet=True, checkpoint_every=2, tensorboard=tensorboard)
    with (
        at_iteration(5, lambda: fill(disk)),
        pytest.raises(UserError, match=r"^The disk of .* is full; what was saved before is whole: free some"),
    ):
        train(disk / "run", options=options)
    (disk / "ballast").unlink()
    check_and_go_on(disk / "run", whole, 4)


@pytest.mark.parametrize(
    ("kind", "method", "call"),
    [
        (CsvLog, "write", 5),
        (CsvLog, "sync", 4),
        (CsvLog, "close", 1),
        (EventLog, "write", 5),
        (EventLog, "flush", 4),
        (EventLog, "close", 1),
    ],
)
def test_every_write_of_the_logs_may_fail(kind, method, call, whole, place, monkeypatch):
    """By injection, so it is also tested where nothing can be mounted."""
    inner, calls = getattr(kind, method), []

    def fails(self, *arguments):
        calls.append(1)
        if len(calls) >= call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return inner(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(kind, method, fails)
        with pytest.raises(UserError, match=r"^The disk of .*run is full; what was saved before is whole"):
            train(place / "run", options=ALL)
    check_and_go_on(place / "run", whole, 8 if method == "close" else 3)


def test_rows_of_a_full_disk_may_end_in_the_middle(whole, place):
    with at_iteration(5, lambda: None):
        train(place / "run", options=ALL)
    content = (place / "run" / "metrics.csv").read_text().splitlines(keepends=True)
    assert len(content) == 9
    # The checkpoint of iteration 6 is the newest, and the seventh row is cut short.
    for path in Checkpoints(place / "run" / "checkpoints").paths()[1:]:
        (path / "manifest.json").unlink()
    (place / "run" / "metrics.csv").write_text("".join(content[:7]) + content[7][:20])
    resume(place / "run")
    assert_same_run(whole, place / "run")


def test_the_command_line_says_it_in_one_line(place, small_disk, environment):
    """Also at the end of the process, when what is buffered is written for the last time."""
    disk = small_disk(2000)
    path = (disk or place) / "run"
    train(path, "Tabular", 1)
    keeping = ["--checkpoint_every=1", "--keep=100", "--no-plots", "--quiet"]
    words = [*MAIN, f"--resume={path}", f"--steps={MANY}", *keeping]
    if disk is None:
        # A limit on the size of any file is the nearest thing to a full disk.
        words = ["bash", "-c", 'trap "" XFSZ; ulimit -f 20; exec "$@"', "bash", *words]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, done.stderr
    assert re.match(r"acpo: (The disk of .* is full; what|Cannot write to .*: File too large)", lines[0])
    found = Checkpoints(path / "checkpoints").paths()
    assert len(found) > 1
    for checkpoint in found:
        read(checkpoint)
    assert len(rows(path)) - 1 <= last(path).iteration <= len(rows(path))


def test_a_start_on_a_full_disk_can_be_repeated(small_disk, place, monkeypatch):
    disk = small_disk(256)
    if disk is None:
        pytest.skip("no mounting here")
    ballast = fill(disk)
    with pytest.raises(UserError, match=r"^The disk of .*run is full"):
        train(disk / "run")
    ballast.unlink()
    train(disk / "run")
    assert last(disk / "run").iteration == 8
