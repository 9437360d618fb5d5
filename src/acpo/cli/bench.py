"""`acpo bench`: the measurements behind the project's figures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from acpo.cli import arguments
from acpo.errors import UserError, nearest

KINDS = ("tabular", "speed")


@dataclass(frozen=True)
class Options:
    """Which measurement, and how long."""

    what: Literal["update", "env", "train", "go1"] = "update"
    """For `speed`: the policy update, the navigation tasks, whole training, or the Go1 task."""
    peers: str = ""
    """Virtual environment with safety-gymnasium and omnisafe, to be measured side by side."""
    out: str = ""
    """Append the results to this file as JSON lines."""
    algos: str = ""
    """Algorithms, separated by commas; by default those of the measurement."""
    count: int = 20
    """For `tabular`: random instances."""
    steps: int = 0
    """Training steps of each algorithm; 0 takes the measurement's own."""
    seed: int = 0
    """For `tabular`: of the training."""


def main(argv: list[str]) -> int:
    try:
        words = arguments.parse(argv, arguments.hints_of(Options), ("KIND",), "bench")
    except arguments.HelpAsked:
        arguments.show_help(
            Options,
            "acpo bench tabular|speed",
            "`tabular`: exact regret and violation on random CMDPs. `speed --what update|env|train|go1`.",
        )
        return 0
    kind = arguments.need(words, 0, "a measurement", "bench", " or acpo bench ".join(KINDS))
    if kind not in KINDS:
        raise UserError(f"There is no measurement '{kind}' of `acpo bench`; {nearest(kind, KINDS)}")
    options = arguments.make(Options, words.flags)
    if options.count < 1 or options.steps < 0:
        raise UserError("count must be at least 1 and steps must not be negative.")
    emit = _Emit(options.out)
    if kind == "tabular":
        _tabular(options, emit)
    else:
        {"update": _update, "env": _env, "train": _train, "go1": _go1}[options.what](options, emit)
    return 0


class _Emit:
    """Prints a line and keeps it."""

    def __init__(self, out: str) -> None:
        self.path = Path(out) if out else None
        if self.path is not None and not self.path.parent.is_dir():
            raise UserError(f"There is no directory {self.path.parent} to write {self.path.name} to.")

    def __call__(self, line: str) -> None:
        print(line, flush=True)
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(line + "\n")


def _algos(options: Options) -> dict[str, Any]:
    from acpo import algorithms  # noqa: PLC0415

    names = [name for name in options.algos.replace(",", " ").split() if name]
    for name in names:
        algorithms.get(name)
    return {"algos": tuple(names)} if names else {}


def _tabular(options: Options, emit: _Emit) -> None:
    from acpo.benchmarks import tabular  # noqa: PLC0415

    steps: dict[str, Any] = {"steps": options.steps} if options.steps else {}
    rows = tabular.run(**_algos(options), count=options.count, seed=options.seed, emit=emit, **steps)
    print(tabular.table(rows))


def _update(options: Options, emit: _Emit) -> None:
    from acpo.benchmarks import update_speed  # noqa: PLC0415

    print(update_speed.table(update_speed.run(**_algos(options), emit=emit)))


def _env(options: Options, emit: _Emit) -> None:
    from acpo.benchmarks import env_speed  # noqa: PLC0415

    env_speed.run(peers=_python(options), out=emit.path)


def _train(options: Options, emit: _Emit) -> None:
    from acpo.benchmarks import train_speed  # noqa: PLC0415

    steps: dict[str, Any] = {"steps": options.steps} if options.steps else {}
    print(train_speed.table(train_speed.run(**_algos(options), peers=_python(options), emit=emit, **steps)))


def _go1(options: Options, emit: _Emit) -> None:
    from acpo.benchmarks import go1_speed  # noqa: PLC0415

    emit(json.dumps(go1_speed.measure(go1_speed.Arguments())))


def _python(options: Options) -> Path | None:
    """The Python of the peers' virtual environment."""
    if not options.peers:
        return None
    path = Path(options.peers)
    python = path / "bin" / "python" if path.is_dir() else path
    if not python.is_file():
        raise UserError(f"There is no virtual environment at {options.peers} (it has no bin/python).")
    return python
