"""Checkpoints that are whole or not there.

    checkpoints/00000120/arrays/        written by orbax
    checkpoints/00000120/manifest.json  iteration, facts, every array's shape and type, and the
                                        SHA-256 of every file, itself included

A checkpoint is written under a name that starts with a dot, brought to the disk, and renamed when
complete; it is given such a name again before it is deleted. So neither a kill nor a power cut
leaves more than a partial folder that nobody reads. Reading checks every sum before any content is
looked at, and executes nothing.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acpo.errors import UserError
from acpo.runs.arrays import Arrays
from acpo.runs.disk import failure, sync

PARTIAL = ".partial-"
DAMAGED = "damaged-"
_MANIFEST = "manifest.json"
_ARRAYS = "arrays"
_LEAST_ROOM = 64 * 1024
"""Bytes that the files of a checkpoint take beside the numbers in them."""


@dataclass(frozen=True)
class Checkpoint:
    path: Path
    iteration: int
    arrays: Arrays
    facts: dict[str, Any]
    """Plain numbers and words that go with the arrays."""


class Damaged(UserError):
    """A checkpoint that is not what was written."""


class Checkpoints:
    """The rolling set of one run."""

    def __init__(self, directory: Path, keep: int = 3) -> None:
        self.directory = directory
        self.keep = keep

    def paths(self) -> list[Path]:
        """Complete checkpoints, oldest first; damage is found on reading."""
        if not self.directory.is_dir():
            return []
        found = [p for p in self.directory.iterdir() if p.name.isdecimal() and p.is_dir()]
        return sorted(found, key=lambda path: int(path.name))

    def prepare(self, upto: int) -> None:
        """Make ready for a run that goes on from iteration `upto`: what a kill left goes away,
        damaged checkpoints are set aside, and a place that cannot be written to is told now
        rather than at the first save."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._remove_partial()
            trial = self.directory / f"{PARTIAL}trial"
            trial.write_text("written to see whether it can be")
            trial.unlink()
        except OSError as error:
            raise failure(self.directory, error) from error
        # Newer ones are there only because they were refused.
        for path in self.paths():
            if int(path.name) > upto:
                aside = path.with_name(DAMAGED + path.name)
                shutil.rmtree(aside, ignore_errors=True)
                with suppress(OSError):
                    path.rename(aside)
        _checkpointer()

    def save(self, iteration: int, arrays: Arrays, facts: dict[str, Any]) -> Path:
        """Write one, then let go of the oldest beyond `keep`."""
        for name, value in arrays.items():
            if not _is_numeric(value.dtype):
                raise UserError(f"{name} is of type {value.dtype}; a checkpoint holds numbers only.")
        final = self.directory / f"{iteration:08d}"
        partial = self.directory / f"{PARTIAL}{iteration:08d}"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._remove_partial()
            partial.mkdir()
            _write_arrays(partial / _ARRAYS, arrays)
            _write_manifest(partial, iteration, arrays, facts)
            for path in (*partial.rglob("*"), partial):
                sync(path)
            self._discard(final)
            partial.rename(final)
            sync(self.directory)
        except Exception as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise failure(self.directory, error) from error
        for path in self.paths()[: -self.keep]:
            self._discard(path)
        return final

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole checkpoint, and a sentence for each newer one that was refused."""
        refused: list[str] = []
        for path in reversed(self.paths()):
            try:
                return read(path), refused
            except Damaged as error:
                refused.append(str(error))
        if refused:
            raise UserError(f"No checkpoint under {self.directory} is whole: {refused[0]}")
        return None, refused

    def _discard(self, path: Path) -> None:
        """Delete a checkpoint; whoever is killed meanwhile leaves no half of it under its name."""
        gone = path.with_name(f"{PARTIAL}old-{path.name}")
        with suppress(FileNotFoundError):
            path.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)

    def _remove_partial(self) -> None:
        for path in self.directory.glob(f"{PARTIAL}*"):
            shutil.rmtree(path, ignore_errors=True)
            with suppress(OSError):
                path.unlink(missing_ok=True)


def read(path: Path) -> Checkpoint:
    """A checkpoint whose every file is as it was written; otherwise `Damaged`."""
    try:
        manifest = json.loads((path / _MANIFEST).read_text())
        signed = manifest.pop("sha256")
        if signed != _digest(_canonical(manifest)) or manifest["files"] != _sums(path):
            raise _Mismatch
        shapes = {name: (tuple(shape), np.dtype(kind)) for name, (shape, kind) in manifest["arrays"].items()}
        arrays = _read_arrays(path / _ARRAYS, shapes)
        return Checkpoint(path, int(manifest["iteration"]), arrays, dict(manifest["facts"]))
    except Exception as error:
        reason = "its checksums do not match" if isinstance(error, _Mismatch) else "it cannot be read"
        raise Damaged(f"The checkpoint {path} is damaged ({reason}) and is not used.") from error


class _Mismatch(Exception):
    """Content that is not what the manifest says."""


def _write_arrays(path: Path, arrays: Arrays) -> None:
    """Empty arrays are left to the manifest: the storage library has no place for them."""
    stored = {name: value for name, value in arrays.items() if value.size}
    if not stored:
        return
    _check_room(path.parent, sum(value.nbytes for value in stored.values()))
    with _quiet_failures():
        _checkpointer().save(path.absolute(), stored)


def _check_room(directory: Path, size: int) -> None:
    """Find a full disk before writing to it, rather than in the middle."""
    if shutil.disk_usage(directory).free < size + _LEAST_ROOM:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def _quiet_failures() -> Iterator[None]:
    """What fails leaves the storage library with threads that miss their event loop; they would
    print a traceback, now or later, beside the sentence in which the failure is told."""
    before = sys.unraisablehook

    def without_closed_loops(found: Any) -> None:
        if "Event loop is closed" not in str(found.exc_value):
            before(found)

    sys.unraisablehook = without_closed_loops
    yield
    sys.unraisablehook = before


def _read_arrays(path: Path, shapes: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]) -> Arrays:
    """The arrays that the manifest announces, and no others."""
    stored: Arrays = {}
    if any(0 not in shape for shape, _ in shapes.values()):
        with _quiet_failures():
            found = _checkpointer().restore(path.absolute())
        stored = {name: np.asarray(value) for name, value in found.items()}
    empty = {name: np.zeros(*shapes[name]) for name in shapes if 0 in shapes[name][0]}
    arrays = stored | empty
    for name, (shape, kind) in shapes.items():
        if not _is_numeric(kind) or (arrays[name].shape, arrays[name].dtype) != (shape, kind):
            raise _Mismatch
    if set(arrays) != set(shapes):
        raise _Mismatch
    return arrays


def _is_numeric(kind: np.dtype[Any]) -> bool:
    """Numbers and truth values, bfloat16 and its like included; neither objects nor text."""
    return kind.kind in "biufc" or (kind.kind == "V" and kind.names is None and kind.name[:4] != "void")


def _checkpointer() -> Any:
    # Half a second to import: only runs that save or load pay for it.
    import orbax.checkpoint as ocp  # noqa: PLC0415

    # It prints a traceback of what it raises as well.
    logging.getLogger("absl").setLevel(logging.CRITICAL + 1)
    return ocp.Checkpointer(ocp.PyTreeCheckpointHandler())


def _write_manifest(path: Path, iteration: int, arrays: Arrays, facts: dict[str, Any]) -> None:
    manifest = {
        "iteration": iteration,
        "facts": facts,
        "arrays": {name: [list(value.shape), value.dtype.name] for name, value in arrays.items()},
        "files": _sums(path),
    }
    manifest["sha256"] = _digest(_canonical(manifest))
    (path / _MANIFEST).write_text(json.dumps(manifest, indent=1))


def _canonical(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True).encode()


def _sums(path: Path) -> dict[str, str]:
    files = sorted(p for p in path.rglob("*") if p.is_file() and p != path / _MANIFEST)
    return {p.relative_to(path).as_posix(): _digest(p.read_bytes()) for p in files}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
