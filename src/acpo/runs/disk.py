"""Writing so that neither a crash, a full disk nor a second process spoils what is there."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acpo.errors import UserError


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, would survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(path: Path, text: str) -> None:
    """Replace a file in one step, so that a reader or a crash never sees half of it."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(text)
        sync(partial)
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    sync(path.parent)


def failure(path: Path, error: BaseException) -> UserError:
    """One sentence for whatever kept something under `path` from being written."""
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
    # The storage library has its own exceptions, with the system's words inside.
    words = str(error)
    if full or "No space left" in words or "quota exceeded" in words:
        return UserError(
            f"The disk of {path} is full; what was saved before is whole: free some space, then resume."
        )
    reason = getattr(error, "strerror", None) or next(iter(words.splitlines()), type(error).__name__)
    return UserError(f"Cannot write to {path}: {reason}.")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tells a failure to write in one sentence."""
    try:
        yield
    except OSError as error:
        raise failure(path, error) from error


class Lock:
    """Holds a directory for one writer. The kernel lets go of it when the process ends, however
    that ends, so a lock file that is left behind locks nothing."""

    NAME = ".lock"

    def __init__(self, directory: Path) -> None:
        with writing(directory):
            self._file = (directory / self.NAME).open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise UserError(
                f"Another process is training in {directory}; wait for it or stop it first."
            ) from None
        except OSError:
            # Some network file systems have no locks; there it is up to the user.
            pass

    def release(self) -> None:
        self._file.close()

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
