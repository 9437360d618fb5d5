"""The measurement of speed runs, and says what it measured. (How fast is for `acpo bench speed`.)"""

import json

import pytest

from acpo.benchmarks import env_speed
from acpo.errors import UserError


def test_a_short_measurement(tmp_path, capsys):
    out = tmp_path / "speed.jsonl"
    rows = env_speed.run(("PointCircle1",), num_envs=64, vector_envs=64, rounds=2, seconds=0.02, out=out)
    line = json.loads(out.read_text())
    assert rows == [line] and json.loads(capsys.readouterr().out.splitlines()[0]) == line
    assert line["task"] == "PointCircle1" and line["rounds"] == 2 and line["num_envs"] == 64
    assert min(line[name] for name in ("ours", "make_vec", "bare", "bare_sleep")) > 100
    assert line["ours"] <= line["ours_best"] and "reference" not in line
    assert 0 < line["share_of_best_bare"] <= line["share_of_bare"] * 1.001


def test_what_cannot_be_measured_is_said(tmp_path):
    with pytest.raises(UserError, match="known are: PointGoal1"):
        env_speed.run(("Go1",))
    with pytest.raises(UserError, match="no Python at"):
        env_speed.run(("PointGoal1",), peers=tmp_path / "python")


def test_the_parts_of_a_name():
    assert env_speed.parts("CarCircle2") == ("Car", "Circle", 2)
