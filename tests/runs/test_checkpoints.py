"""Checkpoints: whole or refused by name, kept in number, free of anything that could be executed."""

import contextlib
import errno
import hashlib
import json
import logging
import os
import pickle
import re
import shutil
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from tiny_runs import EVERY, OPTIONS, assert_same_run, interrupted, last, resume, train

from acpo import UserError
from acpo.cli import main
from acpo.runs import checkpoints as module
from acpo.runs.checkpoints import Checkpoints, Damaged, read

SOURCE = Path(module.__file__).parent.parent
ARRAYS = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "count": np.array(3, np.int32),
    "flag": np.array([True, False]),
    "half": np.asarray(jnp.array([1.5, -2.25], jnp.bfloat16)),
    "double": np.array([np.pi, -np.inf, np.nan]),
    "nothing": np.zeros((0, 4), np.float32),
}
FACTS = {"seconds": 1.5}


def saved(folder: Path, *iterations: int, keep: int = 3) -> Checkpoints:
    found = Checkpoints(folder / "checkpoints", keep)
    for iteration in iterations:
        found.save(iteration, ARRAYS, FACTS)
    return found


def names(checkpoints: Checkpoints) -> list[str]:
    return [path.name for path in checkpoints.paths()]


def test_what_is_read_is_what_was_written(place):
    checkpoint = read(saved(place, 7).paths()[0])
    assert checkpoint.iteration == 7
    assert checkpoint.facts == FACTS
    assert set(checkpoint.arrays) == set(ARRAYS)
    for name, value in ARRAYS.items():
        assert checkpoint.arrays[name].dtype == value.dtype
        assert checkpoint.arrays[name].shape == value.shape
        assert checkpoint.arrays[name].tobytes() == value.tobytes()


def test_only_empty_arrays_are_no_problem(place):
    Checkpoints(place).save(1, {"nothing": ARRAYS["nothing"]}, {})
    assert read(place / "00000001").arrays["nothing"].shape == (0, 4)


def test_the_oldest_are_let_go(place):
    assert names(saved(place, 1, 2, 10, 11, keep=2)) == ["00000010", "00000011"]
    assert not list((place / "checkpoints").glob(".*"))


def test_they_are_ordered_by_number_not_by_name(place):
    found = saved(place, 99_999_999, 100_000_000)
    assert found.newest()[0].iteration == 100_000_000


def test_saving_twice_replaces(place):
    found = saved(place, 3)
    found.save(3, ARRAYS | {"count": np.array(4, np.int32)}, FACTS)
    assert names(found) == ["00000003"]
    assert found.newest()[0].arrays["count"] == 4


@pytest.mark.parametrize("value", [np.array([None]), np.array(["text"]), np.array([{}], dtype=object)])
def test_what_is_no_number_is_not_stored(value, place):
    with pytest.raises(UserError, match=r"odd is of type .*; a checkpoint holds numbers only"):
        Checkpoints(place / "checkpoints").save(1, {"odd": value}, {})
    assert not (place / "checkpoints").exists()


# Damage. Each takes the folder of a checkpoint.


def some_file(path: Path) -> Path:
    """The largest: that with the arrays' content."""
    return max((p for p in (path / "arrays").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


def truncate(path: Path) -> None:
    content = some_file(path).read_bytes()
    some_file(path).write_bytes(content[: len(content) // 2])


def edit(path: Path) -> None:
    content = bytearray(some_file(path).read_bytes())
    content[len(content) // 2] ^= 1
    some_file(path).write_bytes(content)


def edit_manifest(path: Path) -> None:
    text = (path / "manifest.json").read_text()
    assert '"iteration": 3' in text
    (path / "manifest.json").write_text(text.replace('"iteration": 3', '"iteration": 4'))


def truncate_manifest(path: Path) -> None:
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text[: len(text) // 2])


DAMAGES = {
    "truncated": truncate,
    "edited": edit,
    "emptied": lambda path: some_file(path).write_bytes(b""),
    "a file deleted": lambda path: some_file(path).unlink(),
    "a file added": lambda path: (path / "arrays" / "more").write_text("x"),
    "the arrays deleted": lambda path: shutil.rmtree(path / "arrays"),
    "manifest edited": edit_manifest,
    "manifest truncated": truncate_manifest,
    "manifest deleted": lambda path: (path / "manifest.json").unlink(),
    "manifest of another kind": lambda path: (path / "manifest.json").write_text("[1, 2]"),
    "manifest in other letters": lambda path: (path / "manifest.json").write_bytes(b"\xff\xfe"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_one_is_refused_by_its_path_and_the_one_before_is_used(damage, place):
    found = saved(place, 1, 2, 3)
    damage(found.paths()[-1])
    checkpoint, refused = found.newest()
    assert checkpoint.iteration == 2
    assert len(refused) == 1
    assert re.fullmatch(r"The checkpoint .*/00000003 is damaged \(.*\) and is not used\.", refused[0])


def test_when_all_are_damaged_that_is_one_sentence(place):
    found = saved(place, 1, 2, 3)
    for path in found.paths():
        truncate(path)
    with pytest.raises(UserError, match=r"^No checkpoint under .* is whole: The checkpoint .*00000003 is "):
        found.newest()


def resign(path: Path, change) -> None:
    """Edit a manifest as somebody would who knows how it is signed."""
    manifest = json.loads((path / "manifest.json").read_text())
    manifest.pop("sha256")
    change(manifest)
    content = json.dumps(manifest, sort_keys=True).encode()
    manifest["sha256"] = hashlib.sha256(content).hexdigest()
    (path / "manifest.json").write_text(json.dumps(manifest))


FORGERIES = {
    "an object array": lambda m: m["arrays"].update(nothing=[[0, 4], "object"]),
    "text": lambda m: m["arrays"].update(nothing=[[0, 4], "<U7"]),
    "another shape": lambda m: m["arrays"].update(weights=[[3, 2], "float32"]),
    "another type": lambda m: m["arrays"].update(weights=[[2, 3], "int32"]),
    "an array that is not there": lambda m: m["arrays"].update(ghost=[[10**13], "float32"]),
    "an array not announced": lambda m: m["arrays"].pop("weights"),
    "a type that does not exist": lambda m: m["arrays"].update(weights=[[2, 3], "os.system"]),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forged_one_is_refused(forge, place):
    path = saved(place, 1).paths()[0]
    resign(path, lambda manifest: None)
    read(path)
    resign(path, forge)
    with pytest.raises(Damaged):
        read(path)


def test_resuming_from_the_one_before_ends_as_if_nothing_had_been(place):
    train(place / "whole")
    interrupted(train, place / "run", after=5, options=EVERY)
    truncate(last(place / "run").path)
    run = resume(place / "run", options=OPTIONS)
    assert len(run.refused) == 1
    assert str(place / "run" / "checkpoints" / "00000005") in run.refused[0]
    assert (place / "run" / "checkpoints" / "damaged-00000005").is_dir()
    assert_same_run(place / "whole", place / "run")


def test_the_command_line_refuses_a_run_without_a_whole_checkpoint(place, capsys):
    train(place / "run", "Tabular", 1)
    for path in Checkpoints(place / "run" / "checkpoints").paths():
        truncate(path)
    before = sorted(place.rglob("*"))
    for words in (["train", "--resume"], ["eval"]):
        assert main([*words, str(place / "run")]) == 2
        said = capsys.readouterr().err
        assert re.fullmatch(r"acpo: No checkpoint under .* is whole: .*00000001 is damaged .*\n", said)
    assert sorted(place.rglob("*")) == before


# Nothing that is loaded is executed.


def test_nothing_here_knows_how_to_unpickle():
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        for word in ("pickle", "marshal", "shelve", "joblib", "yaml.load(", "unsafe_load", "eval(", "exec("):
            used = re.search(rf"(?<![\w.]){re.escape(word)}", text)
            assert not used or "allow_pickle=False" in text, f"{path}: {word}"


class Malicious:
    def __reduce__(self) -> tuple:
        return os.system, ("echo executed > /dev/null; exit 1",)


def test_a_pickle_in_a_checkpoint_is_not_opened(place, monkeypatch):
    """Even signed, in place of any file that the storage library reads."""
    executed, harm = [], pickle.dumps(Malicious())
    monkeypatch.setattr(os, "system", lambda *words: executed.append(words))
    whole = saved(place, 1).paths()[0]
    files = [file.relative_to(whole) for file in (whole / "arrays").rglob("*") if file.is_file()]
    assert len(files) > 3
    for name in files:
        path = Path(shutil.copytree(whole, place / str(files.index(name)) / "00000001"))
        (path / name).write_bytes(harm)
        sums = module._sums(path)
        resign(path, lambda manifest: manifest.update(files=sums))  # noqa: B023
        with contextlib.suppress(Damaged):
            read(path)
    assert not executed


# Places that cannot be written to.


@pytest.mark.parametrize("noticed", ["before", "while writing"])
def test_a_full_disk_leaves_the_checkpoints_before_whole(noticed, place, small_disk, monkeypatch, capfd):
    disk = small_disk(512)
    if disk is None:
        pytest.skip("no mounting here: the next test does it by injection")
    logged = []
    listener = logging.Handler()
    listener.emit = logged.append
    monkeypatch.setattr(logging.getLogger("absl"), "handlers", [listener])
    if noticed == "while writing":
        monkeypatch.setattr(module, "_check_room", lambda *_: None)
    found = Checkpoints(disk / "checkpoints", keep=10_000)
    big = ARRAYS | {"big": np.random.default_rng(0).normal(size=4000)}
    iteration = 0
    with pytest.raises(UserError, match=r"^The disk of .* is full; what was saved before is whole"):
        for iteration in range(1, 10_000):
            found.save(iteration, big, FACTS)
    assert iteration > 2
    assert [int(path.name) for path in found.paths()] == list(range(1, iteration))
    assert all(read(path).iteration == int(path.name) for path in found.paths())
    assert not logged
    assert capfd.readouterr() == ("", "")
    for path in found.paths()[:2]:  # one may be a block smaller than the next
        shutil.rmtree(path)
    found.save(iteration, big, FACTS)
    assert read(found.paths()[-1]).iteration == iteration
    assert not list((disk / "checkpoints").glob(".partial-*"))


def test_a_full_disk_is_told_wherever_it_shows(place, monkeypatch):
    """The same without mounting: each call that writes fails in its turn."""
    found = saved(place, 1)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for name in ("_write_arrays", "_write_manifest", "sync"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            with pytest.raises(UserError, match="is full; what was saved before is whole"):
                found.save(2, ARRAYS, FACTS)
        assert names(found) == ["00000001"]
        assert not list(found.directory.glob(".*"))
    assert found.newest()[0].iteration == 1


def test_a_file_in_the_place_of_the_directory_is_told(place):
    (place / "checkpoints").write_text("")
    with pytest.raises(UserError, match=r"Cannot write to .*checkpoints: "):
        saved(place, 1)
    with pytest.raises(UserError, match=r"Cannot write to .*checkpoints: "):
        Checkpoints(place / "checkpoints").prepare(0)
