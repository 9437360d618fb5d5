# ruff: noqa: E501 — a table reads best with a line for each entry
"""Command lines that make no sense: one sentence on stderr, a non-zero exit, nothing written."""

import subprocess
import sys
from pathlib import Path

import pytest

from acpo.cli import main

TRAIN = ("train", "Tabular", "--budget", "1")
"""A line that would train, to add a mistake to."""


def told(argv, capsys) -> str:
    """The one sentence that a command answers a mistake with."""
    code = main(list(argv))
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("acpo: ") and err.count("\n") == 1
    assert "Traceback" not in err
    return err.removeprefix("acpo: ").strip()


WORDS = {
    "unknown command": (("trian", "PointGoal1"), "did you mean 'train'?"),
    "a command far from any": (("xyzzy",), "known are: bench, compare"),
    "no task": (("train",), "needs a task"),
    "unknown task": (("train", "PointGaol1", "--budget", "25"), "did you mean 'PointGoal1'?"),
    "two tasks": (("train", "PointGoal1", "CarGoal1", "--budget", "25"), "no use for 'CarGoal1'"),
    "two tasks by flag": (("train", "PointGoal1", "--task", "CarGoal1"), "Two tasks were given"),
    "unknown algorithm": ((*TRAIN, "--algo", "acop"), "There is no algorithm 'acop'; did you mean 'acpo'?"),
    "no budget": (("train", "Tabular"), "needs a budget for each: --budget …"),
    "a budget without a value": (("train", "Tabular", "--budget"), "--budget needs a value"),
    "negative budget": (("train", "Tabular", "--budget", "-3"), "cannot be negative: -3"),
    "NaN budget": (("train", "Tabular", "--budget", "nan"), "budget must be finite"),
    "infinite budget": (("train", "Tabular", "--budget", "inf"), "budget must be finite"),
    "textual budget": (("train", "Tabular", "--budget", "low"), "budget must be a number, not 'low'"),
    "surplus budget": (("train", "Tabular", "--budget", "1,2"), "has 1 cost (cost_0), but 2 budgets were given"),
    "surplus budget, by hand": (("train", "Tabular", "--budget=1", "--budget=2"), "2 budgets were given"),
    "too few budgets": (("train", "Go1", "--budget", "1,2,3"), "has 8 costs"),
    "zero steps": ((*TRAIN, "--steps", "0"), "steps must be at least 1"),
    "negative steps": ((*TRAIN, "--steps", "-5"), "steps must be at least 1, not -5"),
    "textual steps": ((*TRAIN, "--steps", "many"), "steps must be a whole number, not 'many'"),
    "half a step": ((*TRAIN, "--steps", "1.5"), "steps must be a whole number, not '1.5'"),
    "more steps than can be counted": ((*TRAIN, "--steps", "1e30"), "steps"),
    "zero seeds": ((*TRAIN, "--seeds", "0"), "seeds must be at least 1"),
    "negative seed": ((*TRAIN, "--seed", "-1"), "seed must not be negative"),
    "unknown flag": ((*TRAIN, "--stepz", "10"), "did you mean '--steps'?"),
    "a flag like no other": ((*TRAIN, "--zzzzzz", "10"), "`acpo train --help` lists them all"),
    "one dash": ((*TRAIN, "-x"), "flags start with --"),
    "a flag twice": ((*TRAIN, "--steps", "1", "--steps", "2"), "--steps was given twice"),
    "dotted typo": ((*TRAIN, "--ppo.clp", "0.1"), "did you mean '--ppo.clip'?"),
    "a field without its group": ((*TRAIN, "--clip", "0.1"), "did you mean '--ppo.clip'?"),
    "a group as a flag": ((*TRAIN, "--ppo", "0.1"), "no flag '--ppo'"),
    "clip above one": ((*TRAIN, "--ppo.clip", "1.4"), "ppo.clip must be at most 1"),
    "minibatch over batch": ((*TRAIN, "--ppo.minibatch", "1000000"), "is larger than rollout.batch"),
    "batch not a multiple": ((*TRAIN, "--rollout.envs", "7"), "must be a multiple of rollout.envs"),
    "flag of another algorithm": ((*TRAIN, "--algo", "cpo", "--ppo.clip", "0.1"), "cpo does not read 'ppo.clip'"),
    "unknown backend": ((*TRAIN, "--backend", "gpu"), "backend is one of auto, native, mjx"),
    "unknown preset": ((*TRAIN, "--preset", "papr"), "did you mean 'paper'?"),
    "no checkpoints": ((*TRAIN, "--keep", "0"), "keep must be at least 1"),
    "neither true nor false": ((*TRAIN, "--plots=maybe"), "plots"),
    "absent extra": ((*TRAIN, "--wandb", "project"), "pip install 'acpo[wandb]'"),
    "module that is not there": (("train", "nowhere:make", "--budget", "1"), "does not import"),
    "no factory named": (("train", "known_envs:", "--budget", "1"), "has no ''"),
    "factory that is not there": (("train", "known_envs:Tree", "--budget", "1"), "has no 'Tree'"),
    "resume with settings": (("train", "--resume", "x", "--out", "y"), "leave out --out"),
    "resume nothing": (("train", "--resume", "nowhere"), "There is no run at nowhere"),
    "resume a file": (("train", "--resume", "file"), "file is a file; a run is a directory"),
    "resume an empty folder": (("train", "--resume", "empty"), "empty is not a run"),
    "eval without a run": (("eval",), "`acpo eval` needs a run"),
    "eval nothing": (("eval", "nowhere"), "There is no run at nowhere"),
    "eval a file": (("eval", "file"), "file is a file"),
    "eval an empty folder": (("eval", "empty"), "empty is not a run"),
    "compare without runs": (("compare",), "needs at least one run"),
    "compare nothing": (("compare", "nowhere"), "There is no run at nowhere"),
    "compare a file": (("compare", "file"), "file is a file"),
    "compare an empty folder": (("compare", "empty"), "empty is not a run"),
    "export without a run": (("export",), "needs a run"),
    "export nothing": (("export", "nowhere", "p.onnx"), "There is no run at nowhere"),
    "export a file": (("export", "file", "p.onnx"), "file is a file"),
    "export an empty folder": (("export", "empty", "p.onnx"), "empty is not a run"),
    "no measurement": (("bench",), "needs a measurement"),
    "unknown measurement": (("bench", "sped"), "did you mean 'speed'?"),
    "unknown kind of speed": (("bench", "speed", "--what", "light"), "what is one of"),
    "list with a word": (("list", "tasks"), "no use for 'tasks'"),
    "list with a flag": (("list", "--all"), "no flag '--all'"),
    "demo without steps": (("demo", "--steps", "0"), "steps must be at least 1"),
    "output in a file": ((*TRAIN, "--out", "file"), "file is a file; --out needs a directory"),
    "output below a file": ((*TRAIN, "--out", "file/run"), "Cannot write to file/run"),
    "output in a full folder": ((*TRAIN, "--out", "full"), "full is not empty and holds no run"),
    "output where nothing can be": ((*TRAIN, "--out", "/proc/run"), "Cannot write to /proc/run"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WORDS)
def test_a_mistake_in_words_is_told_in_one_sentence(kind, tmp_path, monkeypatch, capsys):
    argv, fragment = WORDS[kind]
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("precious")
    Path("empty").mkdir()
    Path("full").mkdir()
    Path("full/notes.txt").write_text("precious")
    before = sorted(tmp_path.rglob("*"))
    sentence = told(argv, capsys)
    assert fragment in sentence
    assert sorted(tmp_path.rglob("*")) == before
    assert Path("file").read_text() == Path("full/notes.txt").read_text() == "precious"


def test_no_command_shows_the_usage_and_fails(capsys):
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("usage: acpo COMMAND")


def test_a_program_that_calls_the_command_sees_the_failure():
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from acpo.cli import main; sys.exit(main())", "train", "Tabulr"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "acpo: There is no task 'Tabulr'; did you mean 'Tabular'?\n"
