"""`acpo compare` on runs made by hand."""

import json
import shutil
from pathlib import Path

import pytest
from test_bad_words import told

from acpo.cli import main


@pytest.fixture
def two(run):
    """`run` and a copy of it by another name and algorithm."""
    shutil.copytree(run, "other")
    text = Path("other/config.yaml").read_text()
    Path("other/config.yaml").write_text(text.replace("algo: acpo", "algo: ipo"))
    return ["run", "other"]


def evaluated(name: str, *seeds: tuple[list, list]) -> None:
    episodes = [{"reward": reward, "costs": costs} for reward, costs in seeds]
    Path(name, "evaluation.json").write_text(json.dumps({"episodes": episodes}))


def test_without_evaluations_the_end_of_training_counts(two, capsys):
    assert main(["compare", *two]) == 0
    out = capsys.readouterr().out
    assert "known_envs:TwoCosts  acpo  2      15.00 [15.00, 15.00]  15.00  10.00 [10.00, 10.00]" in out
    assert "0 of 2   last 10% of training" in out
    made = {path.name for path in Path("comparison").iterdir()}
    names = ["learning", "budgets_acpo", "budgets_ipo", "plane_even", "plane_late"]
    assert made == {f"{name}.{kind}" for name in names for kind in ("png", "svg")} | {
        "table.md",
        "table.json",
    }


def test_evaluations_count_where_every_run_has_one(two, capsys):
    """acpo: seeds of mean 2 and 4 with costs (3, 9) and (5, 1); its budgets are 4 and 9."""
    evaluated("run", ([1, 3], [[2, 8], [4, 10]]), ([4], [[5, 1]]))
    evaluated("other", ([6], [[4, 9]]), ([8], [[4, 9]]))
    assert main(["compare", *two, "--out", "made/here"]) == 0
    acpo, ipo = json.loads(Path("made/here/table.json").read_text())
    assert acpo["reward"] | {"low": 0, "high": 0} == {
        "mean": 3.0, "low": 0, "high": 0, "iqm": 3.0, "worst": 2.0, "seeds": [2.0, 4.0]
    }  # fmt: skip
    assert acpo["costs"]["even"]["seeds"] == [3.0, 5.0] and acpo["costs"]["late"]["seeds"] == [9.0, 1.0]
    assert (acpo["feasible"], acpo["feasible_seeds"], acpo["source"]) == (True, 1, "evaluation")
    assert (ipo["reward"]["mean"], ipo["feasible_seeds"]) == (7.0, 2)


def test_runs_of_one_algorithm_are_its_seeds(run, capsys):
    shutil.copytree(run, "again")
    assert main(["compare", "run", "again"]) == 0
    (row,) = json.loads(Path("comparison/table.json").read_text())
    assert len(row["reward"]["seeds"]) == 4
    assert main(["compare", "run", "again", "--apart"]) == 0
    assert [row["label"] for row in json.loads(Path("comparison/table.json").read_text())] == ["run", "again"]


def test_a_run_named_twice_counts_once(run):
    assert main(["compare", "run", "run"]) == 0
    (row,) = json.loads(Path("comparison/table.json").read_text())
    assert len(row["reward"]["seeds"]) == 2


def test_runs_with_different_budgets_are_not_thrown_together(run, capsys):
    shutil.copytree(run, "again")
    text = Path("again/config.yaml").read_text()
    Path("again/config.yaml").write_text(text.replace("budget: [4.0, 9.0]", "budget: [4.0, 8.0]"))
    assert "different tasks or budgets; use --apart" in told(["compare", "run", "again"], capsys)
    assert not Path("comparison").exists()
