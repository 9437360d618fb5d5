"""`acpo bench`: the measurements behind the project's figures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from acpo.cli import arguments
from acpo.errors import UserError, nearest

KINDS = ("tabular", "paper", "speed")


@dataclass(frozen=True)
class Options:
    """Which measurement, and how long."""

    what: Literal["update", "env", "train", "go1", "device"] = "update"
    """For `speed`: the policy update, the navigation tasks, whole training, the Go1 task, or tasks in
    the compiled graph."""
    peers: str = ""
    """Virtual environment with safety-gymnasium and omnisafe, to be measured side by side."""
    out: str = ""
    """Append the results to this file as JSON lines; for `paper` the directory of its runs."""
    tasks: str = ""
    """For `paper` and `device`: tasks, separated by commas; by default those of the measurement."""
    algos: str = ""
    """Algorithms, separated by commas; by default those of the measurement."""
    count: int = 20
    """For `tabular`: random instances."""
    steps: int = 0
    """Training steps of each algorithm; 0 takes the measurement's own."""
    seed: int = 0
    """For `tabular`: of the training."""
    seeds: int = 3
    """For `paper`: runs of each algorithm, trained side by side."""
    episodes: int = 100
    """For `paper`: evaluation episodes for each seed; 0 only trains."""
    preset: str = "default"
    """For `paper`: `paper` starts from the paper's hyper-parameter tables."""
    set: str = ""
    """For `paper`: further settings, such as rollout.envs=1000,ppo.kl=0.02; algorithms that do not read
    one go without it."""
    worlds: int = 32768
    """For `device`: environments side by side."""


def main(argv: list[str]) -> int:
    try:
        words = arguments.parse(argv, arguments.hints_of(Options), ("KIND",), "bench")
    except arguments.HelpAsked:
        arguments.show_help(
            Options,
            f"acpo bench {'|'.join(KINDS)}",
            "`tabular`: exact regret and violation on random CMDPs. `paper`: the paper's experiments,"
            " resumable. `speed --what update|env|train|go1|device`: steps or updates a second.",
        )
        return 0
    kind = arguments.need(words, 0, "a measurement", "bench", " or acpo bench ".join(KINDS))
    if kind not in KINDS:
        raise UserError(f"There is no measurement '{kind}' of `acpo bench`; {nearest(kind, KINDS)}")
    options = arguments.make(Options, words.flags)
    for name, least in (("count", 1), ("steps", 0), ("seeds", 1), ("episodes", 0), ("worlds", 1)):
        if getattr(options, name) < least:
            raise UserError(f"{name} must be at least {least}, not {getattr(options, name)}.")
    if kind == "paper":
        _paper(options)
    elif kind == "tabular":
        _tabular(options, _Emit(options.out))
    else:
        speeds = {"update": _update, "env": _env, "train": _train, "go1": _go1, "device": _device}
        speeds[options.what](options, _Emit(options.out))
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

    names = _names(options.algos)
    for name in names:
        algorithms.get(name)
    return {"algos": names} if names else {}


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _paper(options: Options) -> None:
    from acpo.benchmarks import paper  # noqa: PLC0415

    changes = [word.partition("=") for word in _names(options.set)]
    for name, equals, value in changes:
        if not equals or not value:
            raise UserError(f"--set is pairs such as rollout.envs=1000,ppo.kl=0.02, not '{name}'.")
    asked: dict[str, Any] = _algos(options)
    asked |= {"tasks": _names(options.tasks)} if options.tasks else {}
    asked |= {"steps": options.steps} if options.steps else {}
    plan = paper.Plan(
        seeds=options.seeds,
        preset=options.preset,
        changes=tuple((name, value) for name, _, value in changes),
        **asked,
    )
    paper.run(plan, Path(options.out or "runs/paper"), options.episodes)


def _device(options: Options, emit: _Emit) -> None:
    from acpo.benchmarks import device_speed  # noqa: PLC0415

    names = _names(options.tasks) or device_speed.TASKS
    print(device_speed.table(device_speed.run(names, num_envs=options.worlds, emit=emit)))


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
    path = Path(options.peers).absolute()  # it runs in a directory of its own
    python = path / "bin" / "python" if path.is_dir() else path
    if not python.is_file():
        raise UserError(f"There is no virtual environment at {options.peers} (it has no bin/python).")
    return python
