# ruff: noqa: E501 — a table reads best with a line for each entry
"""Runs whose files were damaged, edited or lost, and results that cannot be written."""

import json
from pathlib import Path

import pytest
from test_bad_words import told

EVAL, COMPARE, EXPORT = ("eval", "run", "--episodes", "1"), ("compare", "run"), ("export", "run", "p.onnx")
RESUME = ("train", "--resume", "run")


def put(name, text):
    def damage(run: Path):
        (run / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return damage


def swap(name, old, new):
    def damage(run: Path):
        text = (run / name).read_text()
        assert old in text
        (run / name).write_text(text.replace(old, new))

    return damage


def lose(name):
    return lambda run: (run / name).rename(run / "lost")


def cut_checkpoints(run: Path):
    for manifest in run.glob("checkpoints/*/manifest.json"):
        manifest.write_text(manifest.read_text()[:-100])


def episodes(*seeds):
    return put("evaluation.json", json.dumps({"episodes": list(seeds)}))


ONE = {"reward": [1.0], "costs": [[1.0, 2.0]]}
DAMAGE = {
    "config of no YAML": (put("config.yaml", "a: ["), (EVAL, COMPARE, EXPORT, RESUME), "config.yaml is not valid YAML"),
    "config of bytes": (put("config.yaml", b"\xff\xfe\x00"), (EVAL, COMPARE), "config.yaml is not valid YAML"),
    "config of a number": (put("config.yaml", "5"), (EVAL,), "config.yaml cannot be used: A configuration is a table"),
    "empty config": (put("config.yaml", ""), (EVAL, COMPARE), "is a table of fields"),
    "unknown field": (put("config.yaml", "stepz: 3"), (EVAL,), "config.yaml cannot be used: There is no field 'stepz'; did you mean 'steps'?"),
    "impossible value": (swap("config.yaml", "steps: 240", "steps: -4"), (EVAL, RESUME), "steps must be at least 1"),
    "unknown algorithm": (swap("config.yaml", "algo: acpo", "algo: acop"), (EVAL,), "did you mean 'acpo'?"),
    "other network": (swap("config.yaml", "hidden: [8]", "hidden: [9]"), (EVAL, EXPORT), "does not fit"),
    "more seeds": (swap("config.yaml", "seeds: 2", "seeds: 3"), (EVAL, EXPORT), "does not fit"),
    "more seeds than metrics": (swap("config.yaml", "seeds: 2", "seeds: 3"), (COMPARE,), "its seeds are [0, 1]"),
    "no config": (lose("config.yaml"), (EVAL, COMPARE, EXPORT, RESUME), "is not a run (it has no config.yaml)"),
    "no task facts": (lose("task.yaml"), (EVAL, COMPARE, EXPORT), "Cannot read run/task.yaml"),
    "other task facts": (put("task.yaml", "x: 1"), (EVAL, COMPARE, EXPORT), "task.yaml does not describe a task"),
    "other sizes": (swap("task.yaml", "observation_size: 2", "observation_size: 5"), (EVAL, EXPORT), "does not fit"),
    "metrics of words": (put("metrics.csv", "a,b\nc,d\n"), (COMPARE,), "is not the metrics of a run"),
    "metrics of bytes": (put("metrics.csv", b"\x00\xff\xfe"), (COMPARE,), "is not the metrics of a run"),
    "empty metrics": (put("metrics.csv", ""), (COMPARE,), "has no rows yet"),
    "lost metrics": (lose("metrics.csv"), (COMPARE,), "Cannot read run/metrics.csv"),
    "renamed column": (swap("metrics.csv", "cost_late", "cost_lost"), (COMPARE,), "no column 'cost_late'"),
    "no evaluation": (put("evaluation.json", "{}"), (COMPARE,), "is not an evaluation; make it again with: acpo eval run"),
    "half an evaluation": (put("evaluation.json", '{"episodes": ['), (COMPARE,), "is not an evaluation"),
    "evaluation of bytes": (put("evaluation.json", b"\xff"), (COMPARE,), "is not an evaluation"),
    "list for an evaluation": (put("evaluation.json", "[]"), (COMPARE,), "is not an evaluation"),
    "evaluation of words": (episodes(ONE, ONE | {"reward": ["a"]}), (COMPARE,), "is not an evaluation"),
    "evaluation of nothing": (episodes(ONE, {"reward": [], "costs": []}), (COMPARE,), "is not an evaluation"),
    "evaluation of another run": (episodes(ONE), (COMPARE,), "is of another run"),
    "no checkpoint": (lose("checkpoints"), (EVAL, EXPORT), "run has no checkpoint yet"),
    "cut checkpoints": (cut_checkpoints, (EVAL, EXPORT, RESUME), "No checkpoint under run/checkpoints is whole"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_told_in_one_sentence(kind, run, capsys):
    damage, commands, fragment = DAMAGE[kind]
    damage(run)
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for command in commands:
        assert fragment in told(command, capsys)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


ANSWERS = {
    "no episodes": ((*EVAL[:-1], "0"), "episodes must be a whole number of at least 1"),
    "negative episodes": ((*EVAL[:-1], "-2"), "episodes must be a whole number of at least 1"),
    "textual episodes": ((*EVAL[:-1], "two"), "episodes must be a whole number, not 'two'"),
    "unknown checkpoint to evaluate": ((*EVAL, "--checkpoint", "lst"), "checkpoint is one of last, best"),
    "unknown checkpoint to export": ((*EXPORT, "--checkpoint", "first"), "checkpoint is one of last, best"),
    "eval with two runs": (("eval", "run", "run"), "no use for 'run'"),
    "video of another kind": ((*EVAL, "--video", "film.avi"), "its name should end in .mp4"),
    "video in no folder": ((*EVAL, "--video", "nowhere/film.mp4"), "no directory nowhere"),
    "video over a folder": ((*EVAL, "--video", "folder.mp4"), "it is a directory"),
    "video of what has no picture": ((*EVAL, "--video", "film.mp4"), "has no picture of itself"),
    "export to another kind": (("export", "run", "p.txt"), "its name should end in .onnx"),
    "export without a file": (("export", "run"), "needs a file to write"),
    "export to two files": ((*EXPORT, "q.onnx"), "no use for 'q.onnx'"),
    "export into no folder": (("export", "run", "nowhere/p.onnx"), "in a directory that does not exist"),
    "export over a folder": (("export", "run", "folder.onnx"), "it is a directory"),
    "export where nothing can be": (("export", "run", "/proc/p.onnx"), "Cannot write /proc/p.onnx"),
    "export of an unknown seed": ((*EXPORT, "--seed", "7"), "has the seeds 0, 1, not 7"),
    "comparison in a file": ((*COMPARE, "--out", "file"), "file is a file"),
    "comparison below a file": ((*COMPARE, "--out", "file/x"), "Cannot write to file/x"),
    "comparison where nothing can be": ((*COMPARE, "--out", "/proc/x"), "Cannot write to /proc/x"),
    "resume with another budget": ((*RESUME, "--budget", "9"), "budget cannot change; only steps can"),
    "resume with another task": (("train", "Tabular", "--resume", "run"), "task cannot change"),
    "resume with another algorithm": ((*RESUME, "--algo", "cpo"), "algo cannot change"),
    "resume to before": ((*RESUME, "--steps", "80"), "has 240 steps behind it"),
    "a new run over an old one": (("train", "Tabular", "--budget", "1", "--out", "run"), "already holds a run"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ANSWERS)
def test_impossible_requests_lose_nothing(kind, run, capsys):
    argv, fragment = ANSWERS[kind]
    Path("file").write_text("precious")
    for name in ("folder.mp4", "folder.onnx"):
        Path(name).mkdir()
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert fragment in told(argv, capsys)
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_there_is_no_best_policy_where_none_kept_its_budgets(run, capsys):
    # 10 and 6 a time, against budgets of 4 and 9.
    assert "No policy of seed 0 has kept its budgets yet" in told([*EVAL, "--checkpoint", "best"], capsys)
