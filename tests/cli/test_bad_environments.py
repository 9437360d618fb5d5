"""Environments with something wrong: one sentence that names it, and nothing that was learned is lost."""

import warnings
from pathlib import Path

import pytest
from test_bad_words import told

import acpo
from acpo.cli import main
from acpo.errors import UserError
from acpo.runs.checkpoints import Checkpoints
from acpo.runs.session import RunOptions

REFUSED = {
    "known_envs:NeedsArgument": "raised TypeError while it was made",
    "known_envs:RaisesWhenMade": "raised ValueError while it was made: no such port.",
    "known_envs:ImportsWithin": "raised ModuleNotFoundError while it was made",
    "known_envs:RaisesInReset": "raised RuntimeError in reset: cable unplugged.",
    "known_envs:ExitsInReset": "raised SystemExit in reset",
    "known_envs:TwoValues": "must return five values from step",
    "known_envs:OldStep": "must return five values from step",
    "known_envs:OldReset": "must return (observation, info) from reset",
    "known_envs:NoReward": "must return one reward and two flags",
    "known_envs:NoSpaces": "one Gymnasium environment was expected",
    "known_envs:GraphSpace": "cannot be made a vector",
    "known_envs:ManyActions": "neither Box nor Discrete",
    "known_envs:TextCost": "a cost that is not a number: 'high'",
    "known_envs:TableOfCosts": "costs of shape (2, 2)",
    "known_envs:several": "one Gymnasium environment was expected",
    "known_envs:without_cost": "reports no cost",
    "foreign_envs:NoCost": "reports no cost",
    "foreign_envs:WrongShape": "observation of shape (3,)",
    "foreign_envs:nothing": "gave a int",
    "foreign_envs:number": "is a int, not a function",
    "broken_module:make": "does not import (SyntaxError",
    "leaving_module:make": "does not import (SystemExit",
}
STOPPED = {
    "foreign_envs:Raises": ("5", "raised RuntimeError in step: the motor is on fire."),
    "known_envs:ChangingCosts": ("5,5", "costs of shape (1,) instead of 2 entries as before"),
    "known_envs:NaNReward": ("5", "The reward became NaN or infinite in environment 0 at iteration 1"),
    "known_envs:NaNCost": ("5", "The cost became NaN or infinite in environment 0 at iteration 1"),
    "known_envs:NaNObservation": ("5", "The observation became NaN or infinite in environment 0"),
}


def words(task: str, budget: str, small: dict) -> list[str]:
    flags = [f"--{name}={value}" for name, value in small.items() if name != "network.hidden"]
    return ["train", task, "--budget", budget, *flags, "--network.hidden", "8", "--no-tensorboard", "--quiet"]


@pytest.mark.parametrize("task", REFUSED)
def test_what_one_step_shows_is_refused_before_anything_is_written(
    task, tmp_path, monkeypatch, capsys, small
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("broken_module.py").write_text("def make(:\n")
    Path("leaving_module.py").write_text("raise SystemExit(1)\n")
    with warnings.catch_warnings():
        # Gymnasium warns of what it refuses.
        warnings.simplefilter("ignore")
        assert REFUSED[task] in told(words(task, "5", small), capsys)
    assert not Path("runs").exists()


LONG = ("known_envs:NaNReward", "known_envs:NaNObservation")
"""Each compiles a trainer of its own."""


@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=pytest.mark.long if task in LONG else ()) for task in STOPPED]
)
def test_what_happens_later_stops_training_and_keeps_what_there_was(
    task, tmp_path, monkeypatch, capsys, small
):
    budget, sentence = STOPPED[task]
    monkeypatch.chdir(tmp_path)
    answer = told(words(task, budget, small), capsys)
    assert sentence in answer
    (run,) = Path("runs").iterdir()
    assert answer.endswith(f"Go on with: acpo train --resume {run}")
    checkpoint, refused = Checkpoints(run / "checkpoints").newest()
    assert checkpoint is not None and not refused


def test_an_evaluation_does_not_average_nan(run, capsys):
    settings = run / "config.yaml"
    # The same sizes and names, but one of its costs is infinite.
    settings.write_text(settings.read_text().replace("known_envs:TwoCosts", "test_bad_environments:Infinite"))
    assert "The cost late became NaN or infinite in environment 0 after 3 steps" in told(
        ["eval", "run", "--episodes", "2"], capsys
    )
    assert not (run / "evaluation.json").exists()


def test_a_dying_worker_ends_training_with_a_sentence(tmp_path, small):
    from foreign_envs import Dies  # noqa: PLC0415

    from acpo.tasks.gym.incoming import GymnasiumTask  # noqa: PLC0415

    task = GymnasiumTask(Dies, 4, label="dies", asynchronous=True)
    with pytest.raises(UserError, match=r"^A worker process of dies died\.$"):
        acpo.train(task, budget=5, out=tmp_path / "run", options=RunOptions(quiet=True), **small)
    assert Checkpoints(tmp_path / "run" / "checkpoints").newest()[0] is not None


def test_a_run_on_an_environment_that_is_gone_is_told_so(run, capsys):
    settings = run / "config.yaml"
    settings.write_text(settings.read_text().replace("known_envs:", "gone_envs:"))
    assert "does not import" in told(["eval", "run"], capsys)
    # What needs no environment still works.
    assert main(["export", "run", "policy.onnx"]) == 0


def __getattr__(name: str):
    """`Infinite`, made when it is asked for: pytest would take an environment here for tests."""
    if name != "Infinite":
        raise AttributeError(name)
    from known_envs import TwoCosts  # noqa: PLC0415

    class Infinite(TwoCosts):
        def step(self, action):
            *rest, info = super().step(action)
            return *rest, {"costs": info["costs"] if self.t != 3 else info["costs"] + [0, float("inf")]}

    return Infinite
