"""The table of a comparison."""

import json

import numpy as np

from acpo.report.tables import Score, aligned, to_json, to_markdown

A = Score("acpo", "T", "evaluation", np.array([1.0, 3.0]), {"x": np.array([4.0, 6.0])}, (5.0,))
B = Score("ppo", "T", "evaluation", np.array([9.0]), {"x": np.array([50.0])}, ())
COSTS = {"cost_0": np.array([1.0]), "y": np.array([3.0])}
TWO = Score("ipo", "U", "last 10% of training", np.array([2.0]), COSTS, (1.0, 2.0))


def test_a_row_by_hand():
    head, _, row, other = to_markdown([A, B]).splitlines()
    assert head == "| task | run | seeds | reward | IQM | cost x | IQM | budget | kept by | measured in |"
    assert (
        row
        == "| T | acpo | 2 | 2.00 [1.00, 3.00] | 2.00 | 5.00 [4.00, 6.00] | 5.00 | 5 | 1 of 2 | evaluation |"
    )
    assert other == "| T | ppo | 1 | 9.00 | 9.00 | 50.00 | 50.00 | none | no budget | evaluation |"


def test_runs_with_different_costs_share_a_table():
    head, _, first, second = [line.strip("| ").split(" | ") for line in to_markdown([A, TWO]).splitlines()]
    assert len(head) == len(second) and head[5::3][:3] == ["cost x", "cost_0", "cost y"]
    assert "1.00" in second and "0 of 1" in second and first.count("") == 6


def test_feasibility_is_of_the_mean_and_of_every_cost():
    assert A.feasible and A.feasible_seeds.tolist() == [True, False]
    assert not TWO.feasible and TWO.feasible_seeds.tolist() == [False]


def test_json_holds_what_the_table_does():
    (kept,) = json.loads(to_json([A]))
    assert kept["reward"] == {
        "mean": 2.0,
        "low": 1.0,
        "high": 3.0,
        "iqm": 2.0,
        "worst": 1.0,
        "seeds": [1.0, 3.0],
    }
    assert kept["costs"]["x"]["worst"] == 6.0
    assert (kept["feasible"], kept["feasible_seeds"], kept["budgets"]) == (True, 1, {"x": 5.0})


def test_columns_line_up_in_a_terminal():
    head, rule, *rows = aligned(to_markdown([A, B])).splitlines()
    assert rule.startswith("────  ────  ─────")
    assert len({line.index(word) for line, word in ((head, "run"), (rows[0], "acpo"), (rows[1], "ppo"))}) == 1
