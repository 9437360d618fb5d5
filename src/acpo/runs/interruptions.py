"""Ctrl-C, SIGTERM and SIGHUP: all end training the same way, and none in the middle of a save."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_KINDS = ("SIGINT", "SIGTERM", "SIGHUP")
"""By hand, by a batch system, by a terminal that is closed."""


class Interruptions:
    """Turns the first signal into one `KeyboardInterrupt`, now or when it can be borne.

    Later signals change nothing: what is left to do by then is saving.
    """

    def __init__(self) -> None:
        self._asked = False
        self._held = False

    def check(self) -> None:
        """Stop here if a signal came while it could not be acted on."""
        if self._asked:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Signals wait for the next `check`."""
        before, self._held = self._held, True
        try:
            yield
        finally:
            self._held = before

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Only the main thread hears signals; elsewhere this does nothing. What is ignored, as
        SIGHUP is under nohup, stays so."""
        before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for name in _KINDS:
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                    before[number] = signal.signal(number, self._hear)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, *_: Any) -> None:
        first, self._asked = not self._asked, True
        if first and not self._held:
            raise KeyboardInterrupt
