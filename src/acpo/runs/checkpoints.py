"""Checkpoints that are whole or not there.

    checkpoints/00000120/arrays/        written by orbax
    checkpoints/00000120/manifest.json  iteration, facts, every array's shape and type, and the
                                        SHA-256 of every file, itself included

A checkpoint is written under a name that starts with a dot and renamed when complete, so a kill
leaves at most a partial folder that nobody reads. Reading checks every sum before any content is
looked at, and executes nothing.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acpo.errors import UserError
from acpo.runs.arrays import Arrays

PARTIAL = ".partial-"
_MANIFEST = "manifest.json"
_ARRAYS = "arrays"


@dataclass(frozen=True)
class Checkpoint:
    path: Path
    iteration: int
    arrays: Arrays
    facts: dict[str, Any]
    """Plain numbers that go with the arrays."""


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
        return sorted(p for p in self.directory.iterdir() if p.name.isdigit() and p.is_dir())

    def save(self, iteration: int, arrays: Arrays, facts: dict[str, Any]) -> Path:
        """Write one, then let go of the oldest beyond `keep`."""
        final = self.directory / f"{iteration:08d}"
        partial = self.directory / f"{PARTIAL}{iteration:08d}"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._remove_partial()
            partial.mkdir()
            _write_arrays(partial / _ARRAYS, arrays)
            _write_manifest(partial, iteration, arrays, facts)
            if final.exists():
                shutil.rmtree(final)
            partial.rename(final)
        except Exception as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise _write_error(self.directory, error) from error
        for path in self.paths()[: -self.keep]:
            shutil.rmtree(path, ignore_errors=True)
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

    def drop_after(self, iteration: int) -> None:
        """Forget checkpoints newer than the one a run goes on from."""
        for path in self.paths():
            if int(path.name) > iteration:
                shutil.rmtree(path, ignore_errors=True)

    def _remove_partial(self) -> None:
        for path in self.directory.glob(f"{PARTIAL}*"):
            shutil.rmtree(path, ignore_errors=True)


def read(path: Path) -> Checkpoint:
    """A checkpoint whose every file is as it was written; otherwise `Damaged`."""
    try:
        manifest = json.loads((path / _MANIFEST).read_text())
        signed = manifest.pop("sha256")
        files, shapes = manifest["files"], manifest["arrays"]
        whole = signed == _digest(_canonical(manifest)) and files == _sums(path)
        if not whole:
            raise ValueError("its checksums do not match")
        stored = _read_arrays(path / _ARRAYS) if any(0 not in shape for shape, _ in shapes.values()) else {}
        arrays = {
            name: stored[name] if name in stored else np.zeros(shape, dtype)
            for name, (shape, dtype) in shapes.items()
        }
        return Checkpoint(path, int(manifest["iteration"]), arrays, manifest["facts"])
    except Exception as error:
        reason = (
            str(error) if isinstance(error, ValueError) and "checksums" in str(error) else "it cannot be read"
        )
        raise Damaged(f"The checkpoint {path} is damaged ({reason}) and is not used.") from error


def _write_arrays(path: Path, arrays: Arrays) -> None:
    """Empty arrays are left to the manifest: the storage library has no place for them."""
    stored = {name: value for name, value in arrays.items() if value.size}
    if stored:
        _checkpointer().save(path.absolute(), stored)


def _read_arrays(path: Path) -> Arrays:
    return {name: np.asarray(value) for name, value in _checkpointer().restore(path.absolute()).items()}


def _checkpointer() -> Any:
    # Half a second to import: only runs that save or load pay for it.
    import orbax.checkpoint as ocp  # noqa: PLC0415

    logging.getLogger("absl").setLevel(logging.ERROR)
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


def _write_error(directory: Path, error: Exception) -> UserError:
    """One sentence for whatever kept a checkpoint from being written."""
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    if full:
        return UserError(
            f"The disk of {directory} is full: training stopped, and the checkpoints before are whole."
        )
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    return UserError(f"Cannot write a checkpoint under {directory}: {reason}.")
