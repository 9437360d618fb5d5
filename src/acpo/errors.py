"""What goes wrong, in words for the person who can mend it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A user's mistake, told in one sentence; the command line prints it without a traceback."""


class NonFiniteError(UserError):
    """A signal became NaN or infinite; training stopped and the last good state is kept."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint naming the closest known name, or all of them when none is close."""
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
    if close:
        match = next(n for n in names if n.lower() == close[0])
        return f"did you mean '{match}'?"
    return "known are: " + ", ".join(names) + "."
