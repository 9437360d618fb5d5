"""`acpo train` as people type it, and what it shows."""

import csv
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

import acpo
from acpo.cli import main

COMMAND = [sys.executable, "-c", "import sys; from acpo.cli import main; sys.exit(main())"]


def config_of(argv, monkeypatch) -> dict:
    """The settings that a line comes to, without training."""
    from acpo import api  # noqa: PLC0415

    seen = {}

    def start_run(plan, path, options, task):
        seen.update(config=plan.config, path=path, options=options)
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "start_run", start_run)
    assert main(argv) == 130
    return seen


@pytest.mark.parametrize(
    "flags",
    [
        ("--budget", "10", "--budget", "5"),
        ("--budget", "10,5"),
        ("--budget", "10", "5"),
        ("--budget=10,5",),
        ("--budget=10", "--budget=5"),
    ],
)
def test_budgets_may_be_given_in_any_way(flags, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config_of(["train", "Tabular2", *flags], monkeypatch)["config"].budget == (10.0, 5.0)


def test_one_budget_stands_for_every_cost(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config_of(["train", "Tabular2", "--budget", "7"], monkeypatch)["config"].budget == (7.0, 7.0)


def test_flags_are_fields_and_numbers_may_be_written_as_people_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = "--steps 1e4 --seeds 2 --seed 3 --ppo.clip 1e-1 --network.no-normalise --rollout.episode-window 7"
    seen = config_of(
        ["train", "Tabular", "--budget", "1", *flags.split(), "--network.hidden", "16,4"], monkeypatch
    )
    config = seen["config"]
    assert (config.steps, config.seeds, config.seed) == (10_000, 2, 3)
    assert (config.ppo.clip, config.rollout.episode_window) == (0.1, 7)
    assert not config.network.normalise and config.network.hidden == (16, 4)
    assert seen["path"] == Path("runs/Tabular-acpo-seed3")


def test_a_negated_flag_inside_a_group(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (["--network.no-normalise"], ["--network.normalise", "false"], ["--network.normalise=no"]):
        config = config_of(["train", "Tabular", "--budget", "1", *words], monkeypatch)["config"]
        assert not config.network.normalise


def test_the_papers_preset_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["train", "Tabular", "--budget", "1", "--algo", "ipo", "--preset", "paper"]
    config = config_of(words, monkeypatch)["config"]
    assert (config.rollout.batch, config.interior_point.kappa_unit) == (20000, "absolute")


def test_a_run_from_the_command_line_can_be_gone_on_with(trained, tmp_path, monkeypatch, capsys, small):
    """The settings are those of `trained`, so that nothing is compiled again."""
    monkeypatch.chdir(tmp_path)
    flags = [f"--{name}={value}" for name, value in small.items() if name not in ("network.hidden", "steps")]
    words = ["train", "known_envs:TwoCosts", "--budget", "4,9", "--steps", "2.4e2", "--seeds", "2"]
    assert main([*words, *flags, "--network.hidden", "8", "--checkpoint-every", "1"]) == 0
    out = capsys.readouterr().out
    assert "100% of 240 steps" in out and "\x1b" not in out
    assert "cost even 10.00/4, cost late 6.00/9" in out
    assert "seed 0: reward 15.00, even 10.00 of 4, late 6.00 of 9" in out and "seed 1: reward 15.00" in out
    run = Path("runs/known_envs.TwoCosts-acpo-seed0")
    assert f"Next: acpo eval {run}" in out
    settings = yaml.safe_load((run / "config.yaml").read_text())
    assert (settings["budget"], settings["seeds"], settings["rollout"]["batch"]) == ([4.0, 9.0], 2, 80)
    assert {path.name for path in (run / "plots").iterdir()} == {
        f"{name}.{kind}" for name in ("learning", "budgets_seed0", "budgets_seed1") for kind in ("png", "svg")
    }
    assert (run / "tensorboard/seed_1").is_dir()
    # The same words and the same numbers from Python.
    timing = ("steps_per_second", "seconds", "iteration_seconds", "rollout_seconds")
    before = acpo.load(run).metrics
    for column in set(before.columns) - set(timing):
        np.testing.assert_array_equal(before[column], trained.metrics[column], err_msg=column)

    shutil.rmtree(run / "checkpoints/00000003")
    assert main(["train", "--resume", str(run), "--quiet"]) == 0
    rows = list(csv.DictReader((run / "metrics.csv").open()))
    assert [(row["iteration"], row["seed"]) for row in rows] == [(i, s) for i in "123" for s in "01"]
    assert {(row["reward"], row["cost_even"], row["cost_late"]) for row in rows} == {("15.0", "10.0", "6.0")}
    after = acpo.load(run).metrics
    np.testing.assert_array_equal(after["kl"], before["kl"])


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train", ["Environment steps per seed", "[1e-3 for cpo and crpo]", "undiscounted, per episode"]),
        ("eval", ["--episodes", "--checkpoint", "evaluation.json"]),
        ("compare", ["--out", "--apart"]),
        ("export", ["FILE.onnx", "--checkpoint"]),
        ("bench", ["--what", "--peers"]),
        ("demo", ["--steps", "budget of 25"]),
        ("list", ["Tasks, algorithms and backends"]),
    ],
)  # fmt: skip
def test_help_says_what_there_is(command, words, capsys):
    assert main([command, "--help"]) == 0
    out, err = capsys.readouterr()
    flat = " ".join(out.replace("│", " ").split())
    assert all(word in flat for word in words)
    assert err == ""


def test_help_shows_the_defaults_of_the_algorithm_that_is_named(capsys):
    """CPO's critics learn faster than PPO's."""
    shown = {}
    for algo in ("acpo", "cpo"):
        assert main(["train", "--algo", algo, "--help"]) == 0
        flat = " ".join(capsys.readouterr().out.replace("│", " ").split())
        shown[algo] = flat.partition("--critic.learning-rate")[2].partition("default: ")[2].partition(")")[0]
    assert shown == {"acpo": "0.0003", "cpo": "0.001"}


def test_the_list_names_everything(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for name in (
        "PointGoal1",
        "CarCircle2",
        "Go1",
        "Tabular2",
        "acpo-lag",
        "ppo-lag",
        "crpo",
        "native",
        "mjx",
    ):
        assert f"  {name}" in out


def on_a_terminal(words: list[str], folder: Path, seconds: float = 120) -> tuple[int, str]:
    """Exit code and everything that appeared."""
    main_end, far_end = pty.openpty()
    paths = os.pathsep.join(str(Path(__file__).parents[1] / name) for name in ("cli", "tasks"))
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        stdin=far_end,
        stdout=far_end,
        stderr=far_end,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "110", "LINES": "30", "PYTHONPATH": paths},
    )
    os.close(far_end)
    seen, until = b"", time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            ready, _, _ = select.select([main_end], [], [], 1.0)
            if not ready:
                continue
            try:
                chunk = os.read(main_end, 65536)
            except OSError:  # the far end was closed
                break
            if not chunk:
                break
            seen += chunk
        return process.wait(timeout=10), seen.decode()
    finally:
        process.kill()
        os.close(main_end)


@pytest.mark.long
def test_a_terminal_gets_the_live_view(tmp_path, small):
    flags = [f"--{name}={value}" for name, value in small.items() if name != "network.hidden"]
    words = [
        "train",
        "known_envs:TwoCosts",
        "--algo",
        "ipo",
        "--budget",
        "10,5",
        *flags,
        "--network.hidden",
        "8",
    ]
    code, seen = on_a_terminal([*words, "--no-plots", "--no-tensorboard"], tmp_path)
    assert code == 0
    assert "\x1b[" in seen
    for word in ("compiling", "240 / 240 steps", "steps/s", "measured", "desired", "budget now", "cost late",
                 "stage: max-reward"):  # fmt: skip
        assert word in seen
