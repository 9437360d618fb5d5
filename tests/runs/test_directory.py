"""Run directories: complete, reloadable, never overwritten, and nothing in them is executed."""

import os
from pathlib import Path

import pytest

from acpo import UserError, configure
from acpo.cli import main
from acpo.runs import directory as directories
from acpo.runs import disk
from acpo.runs.disk import Lock, write_atomically
from acpo.tasks.base import Box, Discrete, TaskSpec

SPEC = TaskSpec("two", 3, Box(2), ("hazards", "vases"), 10)
CONFIG = configure.build("acpo", "two", changes={"budget": "10,5", "ppo.clip": 0.1, "network.hidden": "7,8"})


@pytest.mark.parametrize("actions", [Box(2), Discrete(4)])
def test_settings_and_task_are_read_back(actions, place):
    spec = TaskSpec("two", 3, actions, ("hazards", "vases"), 10)
    directories.create(place / "run", CONFIG, spec)
    found = directories.open_run(place / "run")
    assert found.read_config() == CONFIG
    assert found.read_spec() == spec


def test_every_setting_is_in_the_file(place):
    text = directories.create(place / "run", CONFIG, SPEC).config.read_text()
    for name in configure.FIELDS:
        assert f"{name.rpartition('.')[2]}:" in text


def test_a_run_is_not_begun_over_another_or_over_something_else(place):
    directories.create(place / "run", CONFIG, SPEC)
    (place / "notes").mkdir()
    (place / "notes" / "thesis.tex").write_text("")
    (place / "file").write_text("")
    for name, sentence in (("run", "already holds a run"), ("notes", "is not empty"), ("file", "is a file")):
        with pytest.raises(UserError, match=sentence):
            directories.create(place / name, CONFIG, SPEC)


def test_what_a_failed_start_left_is_no_obstacle(place, monkeypatch):
    def full(path: Path) -> None:
        if path.name.startswith("config"):
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "sync", full)
        with pytest.raises(UserError, match=r"The disk of .*run is full"):
            directories.create(place / "run", CONFIG, SPEC)
    assert (place / "run" / "task.yaml").exists()
    assert directories.create(place / "run", CONFIG, SPEC).read_config() == CONFIG


def test_a_directory_that_another_process_begins_in_is_refused(place):
    (place / "run").mkdir()
    with Lock(place / "run"), pytest.raises(UserError, match="Another process is training"):
        directories.create(place / "run", CONFIG, SPEC)
    assert not (place / "run" / "config.yaml").exists()


def test_fresh_paths_are_fresh(place):
    first = directories.fresh_path("pkg.mod:make", "acpo", 3, place)
    assert first == place / "pkg.mod.make-acpo-seed3"
    first.mkdir()
    assert directories.fresh_path("pkg.mod:make", "acpo", 3, place).name == "pkg.mod.make-acpo-seed3-2"


def test_a_failed_replacement_leaves_the_old_file_and_nothing_else(place, monkeypatch):
    write_atomically(place / "file", "old")

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "sync", fails)
    with pytest.raises(OSError):
        write_atomically(place / "file", "new")
    assert (place / "file").read_text() == "old"
    assert [p.name for p in place.iterdir()] == ["file"]


# Files from strangers.

HARM = "!!python/object/apply:os.system ['touch {mark}']"
TAGS = [
    HARM,
    "!!python/object/new:os.system ['touch {mark}']",
    "!!python/name:os.system",
    "!!python/module:os",
    "algo: " + HARM,
    "budget: [" + HARM + "]",
]


@pytest.mark.parametrize("text", TAGS)
@pytest.mark.parametrize("name", ["config.yaml", "task.yaml"])
def test_a_file_that_wants_to_execute_something_is_refused(text, name, place, capsys):
    directories.create(place / "run", CONFIG, SPEC)
    mark = place / "executed"
    (place / "run" / name).write_text(text.format(mark=mark))
    assert main(["eval", str(place / "run")]) == 2
    said = capsys.readouterr().err
    assert said == f"acpo: {place / 'run' / name} is not valid YAML.\n"
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    ["", "[1, 2]", "just words", "steps: many", "unknown: 1", "rollout: 3", "ppo: {clip: [1]}", "\x00"],
)
def test_a_configuration_that_is_none_is_one_sentence(text, place, capsys):
    directories.create(place / "run", CONFIG, SPEC)
    (place / "run" / "config.yaml").write_text(text)
    assert main(["eval", str(place / "run")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("text", ["", "[1, 2]", "name: two", "actions: 3", "{costs: 4, actions: {kind: bo}}"])
def test_a_task_that_is_none_is_one_sentence(text, place):
    directories.create(place / "run", CONFIG, SPEC)
    (place / "run" / "task.yaml").write_text(text)
    with pytest.raises(UserError, match=r"task\.yaml does not describe a task"):
        directories.open_run(place / "run").read_spec()


def test_a_directory_that_cannot_be_written_to_is_told(place):
    os.mkfifo(place / "pipe")
    with pytest.raises(UserError, match=r"^Cannot write to .*: "):
        directories.create(place / "pipe" / "run", CONFIG, SPEC)
