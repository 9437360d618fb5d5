"""Interrupted and resumed is the same as never interrupted; whatever stops a run, nothing is lost."""

import contextlib
import dataclasses
import errno
import os
import signal
import warnings

import numpy as np
import pytest
from tiny_runs import (
    BATCH,
    EVERY,
    OPTIONS,
    assert_same_run,
    assert_same_state,
    at_iteration,
    interrupt,
    interrupted,
    last,
    resume,
    rows,
    tabular,
    train,
)
from walkers import REWARD, HostWalk, Walk

from acpo import UserError
from acpo.cli import main
from acpo.errors import NonFiniteError
from acpo.runs import directory as directories
from acpo.runs.checkpoints import Checkpoints
from acpo.runs.disk import Lock
from acpo.runs.metrics import CsvLog
from acpo.tasks.tabular import TabularCMDP

NAVIGATION = {
    "task": "PointCircle1",
    "rollout__envs": 4,
    "rollout__batch": 80,
    "steps": 80 * 4,
    "ppo__minibatch": 40,
    "backend": "native",
}
TASKS = {
    "tabular": {"task": tabular()},
    "tabular, two seeds": {"task": tabular(), "seeds": 2},
    "tabular, lagrangian": {"task": tabular(), "algo": "acpo-lag"},
    "navigation": NAVIGATION,
    "navigation, two seeds": NAVIGATION | {"seeds": 2},
    "gymnasium": {"task": "foreign_envs:Walk"},
    "gymnasium, two costs and seeds": {"task": "foreign_envs:Vector", "seeds": 2, "budget": (1.5, 1.0)},
    "go1": {
        "task": "Go1",
        "rollout__envs": 4,
        "rollout__batch": 80,
        "steps": 80 * 4,
        "ppo__minibatch": 40,
        "backend": "native",
        "budget": 5.0,
    },
}
LONG = {"go1", "navigation, two seeds", "tabular, lagrangian", "gymnasium"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in TASKS]
)
def test_an_interrupted_run_goes_on_exactly(name, place):
    settings = TASKS[name]
    task = settings["task"]
    train(place / "whole", **settings)
    total = last(place / "whole").iteration
    interrupted(train, place / "parts", **settings, after=1)
    interrupted(resume, place / "parts", task, after=total - 2)
    assert last(place / "parts").iteration == total - 1
    resume(place / "parts", task)
    assert_same_run(place / "whole", place / "parts")
    assert len(rows(place / "whole")) == total * settings.get("seeds", 1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run of eight iterations on the tabular task."""
    path = tmp_path_factory.mktemp("whole") / "run"
    train(path)
    return path


def test_the_run_that_others_are_compared_with_is_worth_it(whole):
    """It goes through all stages, and its parameters and budgets move."""
    assert len({row["stage"] for row in rows(whole)}) == 3
    assert len({row["kl"] for row in rows(whole)}) == 8
    assert len({row["budget_cost_0"] for row in rows(whole)}) > 1


def test_frequent_checkpoints_change_nothing(whole, place):
    train(place / "run", options=EVERY)
    assert_same_run(whole, place / "run")


def test_more_steps_go_on_the_same_way_wherever_it_stopped(whole, place):
    """`steps` sets the pace of decaying rates, so a run that is extended differs from one that was
    longer from the start; yet it is determined by where it was extended."""
    for name, stops in (("at once", []), ("in parts", [2, 3])):
        path = place / name
        train(path)
        for stop in stops:
            interrupted(resume, path, steps=BATCH * 14, after=stop)
        resume(path, steps=BATCH * 14)
    assert_same_run(place / "at once", place / "in parts")
    assert rows(place / "at once")[:8] == rows(whole)
    assert len(rows(place / "at once")) == 14
    assert directories.RunDirectory(place / "at once").read_config().steps == BATCH * 14


def test_a_finished_run_has_nothing_left_to_do(whole, place):
    train(place / "run")
    before = (place / "run" / "metrics.csv").read_bytes()
    resume(place / "run")
    assert (place / "run" / "metrics.csv").read_bytes() == before
    with pytest.raises(UserError, match="512 steps behind it, more than --steps asks for"):
        resume(place / "run", steps=BATCH)


@pytest.mark.long
def test_a_run_that_stopped_because_it_converged_does_not_go_on(place):
    settings = {"adversarial__finish": 100.0, "adversarial__stop_when_converged": True}
    train(place / "run", iterations=40, **settings)
    done = last(place / "run").iteration
    assert done < 40
    resume(place / "run")
    assert last(place / "run").iteration == done
    assert len(rows(place / "run")) == done


def test_a_run_can_be_moved(whole, place):
    interrupted(train, place / "here", after=3)
    (place / "there").mkdir()
    (place / "here").rename(place / "there" / "run")
    resume(place / "there" / "run")
    assert_same_run(whole, place / "there" / "run")


def test_only_steps_may_change(place):
    interrupted(train, place / "run", after=2)
    with pytest.raises(UserError, match=r"ppo\.clip cannot change; only steps can"):
        resume(place / "run", **{"ppo.clip": 0.1})


# Signals.


@pytest.mark.parametrize("kind", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_save_and_restore_who_heard_them_before(kind, whole, place):
    number = getattr(signal, kind)
    heard = []
    before = signal.signal(number, lambda *_: heard.append(1))
    try:
        with at_iteration(3, lambda: signal.raise_signal(number)), pytest.raises(KeyboardInterrupt):
            train(place / "run")
        signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    assert heard == [1]
    assert last(place / "run").iteration == 3
    resume(place / "run")
    assert_same_run(whole, place / "run")


def test_what_is_ignored_stays_ignored(place):
    """SIGHUP under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with at_iteration(1, lambda: signal.raise_signal(signal.SIGHUP)):
            train(place / "run", iterations=8)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert last(place / "run").iteration == 8


def test_a_signal_during_a_save_waits_for_its_end(whole, place, monkeypatch):
    """Several of them, at the end of what a checkpoint's files need and before it has its name."""
    written, calls = Checkpoints.save, []

    def save(self, *arguments):
        calls.append(1)
        interrupt()
        interrupt()
        path = written(self, *arguments)
        interrupt()
        return path

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save)
        with pytest.raises(KeyboardInterrupt):
            train(place / "run", options=dataclasses.replace(EVERY, checkpoint_every=2))
    assert [path.name for path in Checkpoints(place / "run" / "checkpoints").paths()] == ["00000002"]
    assert len(calls) == 1
    resume(place / "run")
    assert_same_run(whole, place / "run")


def test_a_second_ctrl_c_while_the_first_is_saved_changes_nothing(whole, place, monkeypatch):
    written = Checkpoints.save

    def save(self, *arguments):
        interrupt()
        return written(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save)
        interrupted(train, place / "run", after=3)
    assert last(place / "run").iteration == 3
    resume(place / "run")
    assert_same_run(whole, place / "run")


class Swallows(HostWalk):
    """A simulator that eats the interruption, as a callback from C may."""

    def step(self, actions):
        self.turns = getattr(self, "turns", 0) + 1
        if self.turns == 10:
            with contextlib.suppress(KeyboardInterrupt):
                interrupt()
        return super().step(actions)


def test_an_interruption_that_somebody_swallows_ends_training_all_the_same(place):
    with pytest.raises(KeyboardInterrupt):
        train(place / "run", Swallows())
    assert last(place / "run").iteration == 2


@pytest.mark.parametrize("call", [1, 3], ids=["first iteration", "third iteration"])
def test_ctrl_c_in_the_middle_of_a_compiled_iteration_waits_for_its_end(call, whole, place, monkeypatch):
    from acpo import training  # noqa: PLC0415

    inner, calls = training._iterate_seeds, []

    def iterate(*arguments):
        calls.append(1)
        if len(calls) == call:
            # Warp calls back into Python from the graph; an exception in there would be lost.
            interrupt()
        return inner(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(training, "_iterate_seeds", iterate)
        with pytest.raises(KeyboardInterrupt):
            train(place / "run")
    assert last(place / "run").iteration == call
    resume(place / "run")
    assert_same_run(whole, place / "run")


class Interrupted(HostWalk):
    """Ctrl-C while a simulator steps, in the step `at`; eight make an iteration."""

    at = 0

    def step(self, actions):
        self.turns = getattr(self, "turns", 0) + 1
        if self.turns == self.at:
            interrupt()
        return super().step(actions)


@pytest.mark.parametrize(("at", "left"), [(4, 0), (20, 2)])
def test_ctrl_c_in_a_simulator_costs_the_iteration(at, left, place):
    task = Interrupted()
    task.at = at
    with pytest.raises(KeyboardInterrupt):
        train(place / "run", task)
    assert last(place / "run").iteration == left


# What else may go wrong.


@pytest.mark.parametrize("task", [Walk(kind=REWARD, which=5, at=20), HostWalk(kind=REWARD, which=5, at=20)])
def test_nan_is_named_and_the_state_before_it_is_saved(task, place):
    with pytest.raises(
        NonFiniteError, match="The reward became NaN or infinite in environment 5 at iteration 3"
    ):
        train(place / "run", task)
    assert last(place / "run").iteration == 2
    assert len(rows(place / "run")) == 2
    assert all(np.isfinite(v).all() for k, v in last(place / "run").arrays.items() if "policy" in k)


def test_nan_on_the_command_line_is_one_sentence_and_exit_code_2(place, capsys):
    words = ["train", "tiny_runs:Overflows", "--budget", "1", "--steps", "640", "--rollout.envs", "8"]
    words += [
        "--rollout.batch",
        "64",
        "--ppo.minibatch",
        "32",
        "--network.hidden",
        "8",
        "--no-plots",
        "--quiet",
    ]
    assert main([*words, "--out", str(place / "run")]) == 2
    said = capsys.readouterr().err.strip()
    assert "The reward became NaN or infinite in environment 0 at iteration 3" in said
    assert len(said.splitlines()) == 1
    assert last(place / "run").iteration == 2


def test_an_unforeseen_failure_loses_nothing(whole, place):
    def fail():
        raise ZeroDivisionError

    with at_iteration(4, fail), pytest.raises(ZeroDivisionError):
        train(place / "run")
    assert last(place / "run").iteration == 4
    resume(place / "run")
    assert_same_run(whole, place / "run")


def test_a_terminal_that_is_gone_does_not_end_training(whole, place):
    def fail():
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with at_iteration(2, fail):
        train(place / "run")
    assert_same_run(whole, place / "run")


def test_two_processes_do_not_train_in_one_directory(place):
    interrupted(train, place / "run", after=2)
    files = [place / "run" / name for name in ("config.yaml", "metrics.csv")]
    before = [file.read_bytes() for file in files]
    with Lock(place / "run"):
        for more in ({}, {"steps": 10_000}):
            with pytest.raises(UserError, match=r"Another process is training in .*run"):
                resume(place / "run", **more)
    assert before == [file.read_bytes() for file in files]
    resume(place / "run")


def test_a_directory_in_training_is_locked_and_free_afterwards(place):
    def look():
        with pytest.raises(UserError, match="Another process is training"):
            Lock(place / "run")

    with at_iteration(2, look):
        train(place / "run")
    Lock(place / "run").release()


def test_a_task_that_has_changed_is_refused(place):
    interrupted(train, place / "run", after=2)
    old = tabular()
    tables = [np.asarray(t) for t in (old.transitions, old.reward, old.costs, old.initial)]
    with pytest.raises(UserError, match=r"has changed since .*: observation_size was 12 and is 15\."):
        resume(place / "run", TabularCMDP(*tables, horizon=5))
    resume(place / "run")


def test_another_kind_of_backend_is_refused_and_named(place):
    interrupted(train, place / "run", Walk(), after=2)
    with pytest.raises(UserError, match=r"trained with its simulator in the graph, but here .* on the host"):
        resume(place / "run", HostWalk())


def test_another_device_is_a_warning(place, monkeypatch):
    interrupted(train, place / "run", after=2)
    path = last(place / "run")
    Checkpoints(place / "run" / "checkpoints").save(2, path.arrays, path.facts | {"device": "tpu"})
    with pytest.warns(UserWarning, match=r"trained with device tpu; .* not bit for bit"):
        resume(place / "run")


def test_a_checkpoint_of_other_settings_does_not_fit(place):
    interrupted(train, place / "run", Walk(), after=2)
    config = place / "run" / "config.yaml"
    config.write_text(config.read_text().replace("hidden: [8]", "hidden: [9]"))
    with pytest.raises(UserError, match=r"Cannot go on from .*00000002: The checkpoint does not fit"):
        resume(place / "run", Walk())


class Forgets(HostWalk):
    def load(self, saved):
        super().load({"place": saved["place"]})


def test_a_simulator_that_does_not_take_its_state_back_is_told(place):
    interrupted(train, place / "run", HostWalk(), after=2)
    with pytest.raises(UserError, match=r"simulator does not take back what it saved \(KeyError: 'clock'\)"):
        resume(place / "run", Forgets())


def test_a_place_without_room_for_checkpoints_is_told_at_the_start(place, monkeypatch):
    (place / "run").mkdir()
    seen = []
    monkeypatch.setattr(CsvLog, "write", lambda *_: seen.append(1))
    before = Checkpoints.prepare

    def prepare(self, upto):
        self.directory.write_text("a file where the directory should be")
        before(self, upto)

    monkeypatch.setattr(Checkpoints, "prepare", prepare)
    with pytest.raises(UserError, match=r"Cannot write to .*checkpoints: File exists\."):
        train(place / "run")
    assert not seen


def test_no_warning_without_a_reason(place):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        interrupted(train, place / "run", after=2)
        resume(place / "run")
    assert_same_state(place / "run", place / "run")
    assert OPTIONS.checkpoint_every == 0
