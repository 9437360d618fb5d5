"""Numbers of a run: written as CSV and TensorBoard events, read back as a table.

The file has one row per iteration and seed. Floats are written with as many digits as it takes to
read the same number back, so equal runs give equal files (`TIMING` columns aside).
"""

from __future__ import annotations

import csv
import itertools
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np

from acpo.errors import UserError
from acpo.problem import STAGE_NAMES
from acpo.runs.disk import write_atomically
from acpo.tasks.base import TaskSpec

TIMING = ("steps_per_second", "seconds", "iteration_seconds", "rollout_seconds")
"""Columns that depend on the machine."""

_FIRST = ("iteration", "seed", "steps", "reward")
Row = dict[str, Any]


def rows(metrics: dict[str, Any], spec: TaskSpec, first_seed: int, batch: int, seconds: float) -> list[Row]:
    """One flat row per seed from a trainer's metrics [S, …]; `seconds` is the run's age."""
    seeds = len(metrics["reward"])
    return [_row(metrics, spec, s, first_seed, batch, seconds) for s in range(seeds)]


def _row(metrics: dict[str, Any], spec: TaskSpec, s: int, first_seed: int, batch: int, seconds: float) -> Row:
    signals = ("reward", *spec.costs)
    iteration = int(metrics["iteration"][s])
    row: Row = {"iteration": iteration, "seed": first_seed + s, "steps": iteration * batch}
    row["reward"] = metrics["reward"][s]
    row |= {cost_column(name): metrics["costs"][s][k] for k, name in enumerate(spec.costs)}
    row |= {f"budget_{name}": metrics["budgets"][s][k] for k, name in enumerate(spec.costs)}
    row["reward_budget"] = metrics["reward_budget"][s]
    row["stage"] = STAGE_NAMES[int(metrics["stage"][s])]
    if "multipliers" in metrics:
        row |= {f"multiplier_{name}": metrics["multipliers"][s][k] for k, name in enumerate(signals)}
    done = {"iteration", "reward", "costs", "budgets", "reward_budget", "stage", "multipliers"}
    done |= {"seconds", "rollout_seconds", "gradient_finite"}
    for name in sorted(set(metrics) - done):
        value = np.asarray(metrics[name][s])
        if value.ndim == 0:
            row[name] = value[()]
        elif value.shape == (len(signals),):
            row |= {f"{name}_{signal}": value[k] for k, signal in enumerate(signals)}
    took = float(metrics["seconds"][s])
    row["steps_per_second"] = round(batch * len(metrics["reward"]) / took, 1)
    row["seconds"] = round(seconds, 3)
    row["iteration_seconds"] = round(took, 4)
    if "rollout_seconds" in metrics:
        row["rollout_seconds"] = round(float(metrics["rollout_seconds"][s]), 4)
    return row


def cost_column(cost: str) -> str:
    """The column of a cost's measured return; names such as "cost" and "cost_0" need no prefix."""
    return cost if cost.startswith("cost") else f"cost_{cost}"


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    return str(value[()] if isinstance(value, np.ndarray) else value)


class CsvLog:
    """Appends rows; what is written is on its way to the disk when `write` returns."""

    def __init__(self, path: Path, upto: int | None = None) -> None:
        """`upto`: go on after that iteration; later rows, and a last one cut short, are dropped."""
        self._columns: list[str] | None = None
        if upto is None:
            path.unlink(missing_ok=True)
        else:
            self._columns = _truncate(path, upto)
        self._file: TextIO = path.open("a", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")

    def write(self, new: list[Row]) -> None:
        if self._columns is None:
            self._columns = list(new[0])
            self._writer.writerow(self._columns)
        if set(self._columns) != set(new[0]):
            raise UserError(f"{self._file.name} was written with other columns than this run measures.")
        for row in new:
            self._writer.writerow([_text(row[name]) for name in self._columns])
        self._file.flush()

    def sync(self) -> None:
        """Wait until the rows would survive a power cut."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _truncate(path: Path, upto: int) -> list[str] | None:
    """Keep whole rows up to an iteration; gives the columns, or None where there are no rows."""
    if not path.exists():
        return None
    try:
        kept = path.read_text().split("\n")[:-1]
        columns = kept[0].split(",") if kept else []
        whole = [line for line in kept[1:] if line.count(",") == len(columns) - 1]
        whole = [line for line in whole if int(line.partition(",")[0]) <= upto]
    except ValueError:
        raise UserError(f"{path} is not the metrics of a run; move it away to go on without it.") from None
    write_atomically(path, "\n".join([",".join(columns), *whole, ""]) if kept else "")
    return columns or None


class EventLog:
    """TensorBoard events, a folder per seed, one event an iteration.

    The library's own writers are not used: the one in the background loses the reason of a failure,
    and the other replaces a file that was begun in the same second.
    """

    def __init__(self, path: Path, seeds: list[int], purge_after: int | None = None) -> None:
        """`purge_after`: go on after that iteration; TensorBoard then hides what came later."""
        from tensorboardX.proto.event_pb2 import Event, SessionLog  # noqa: PLC0415
        from tensorboardX.record_writer import masked_crc32c  # noqa: PLC0415

        self._event, self._checksum = Event, masked_crc32c
        self._files: dict[int, IO[bytes]] = {}
        for seed in seeds:
            folder = path / f"seed_{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            self._files[seed] = _fresh_events(folder)
            self._append(seed, Event(wall_time=time.time(), file_version="brain.Event:2"))
            if purge_after is not None:
                restart = SessionLog(status=SessionLog.START)
                event = Event(wall_time=time.time(), step=purge_after + 1, session_log=restart)
                self._append(seed, event)

    def write(self, new: list[Row]) -> None:
        for row in new:
            event = self._event(wall_time=time.time(), step=row["iteration"])
            for name, value in row.items():
                if name not in ("iteration", "seed", "stage"):
                    event.summary.value.add(tag=_tag(name), simple_value=float(value))
            self._append(row["seed"], event)

    def flush(self) -> None:
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Close every file even when one cannot take what is still to be written."""
        failures = []
        for file in self._files.values():
            try:
                file.close()
            except OSError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _append(self, seed: int, event: Any) -> None:
        """One record: length, its checksum, the event, its checksum."""
        content = event.SerializeToString()
        length = struct.pack("<Q", len(content))
        sums = [struct.pack("<I", self._checksum(part)) for part in (length, content)]
        self._files[seed].write(length + sums[0] + content + sums[1])


def _fresh_events(folder: Path) -> IO[bytes]:
    """A new file whose name sorts after those that are there, as TensorBoard reads them."""
    now = int(time.time())
    for n in itertools.count():
        try:
            return (folder / f"events.out.tfevents.{now}.{n:04d}").open("xb")
        except FileExistsError:
            continue
    raise AssertionError


def _tag(column: str) -> str:
    """`cost_hazards` as `cost/hazards`, so that TensorBoard groups them."""
    for group in ("cost", "budget", "multiplier", "explained_variance"):
        if column.startswith(group + "_"):
            return f"{group}/{column.removeprefix(group + '_')}"
    return column


class WandbLog:
    """Weights & Biases, for those who ask for it."""

    def __init__(self, project: str, name: str, config: dict[str, Any]) -> None:
        try:
            import wandb  # noqa: PLC0415
        except ImportError:
            raise UserError("--wandb needs the extra: pip install 'acpo[wandb]'.") from None
        self._run = wandb.init(project=project, name=name, config=config, resume="allow", id=name)

    def write(self, new: list[Row]) -> None:
        many = len(new) > 1
        flat = {
            f"seed_{row['seed']}/{_tag(name)}" if many else _tag(name): value
            for row in new
            for name, value in row.items()
        }
        self._run.log({name: getattr(value, "item", lambda v=value: v)() for name, value in flat.items()})

    def close(self) -> None:
        self._run.finish()


class Table:
    """Columns by name as arrays; text columns stay text."""

    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.columns)})"

    @property
    def seeds(self) -> list[int]:
        return sorted({int(seed) for seed in self["seed"]})

    def seed(self, seed: int) -> Table:
        """The rows of one seed, oldest first."""
        rows = self["seed"] == seed
        return Table({name: column[rows] for name, column in self._columns.items()})

    def per_seed(self) -> Iterator[Table]:
        return (self.seed(seed) for seed in self.seeds)


def read(path: Path) -> Table:
    """`metrics.csv` as a table; a last row cut short by a kill is left out."""
    try:
        with path.open(newline="") as file:
            header, *lines = list(csv.reader(file)) or [[]]
        lines = [line for line in lines if len(line) == len(header)]
        if not header or not lines:
            raise UserError(f"{path} has no rows yet.")
        columns = {}
        for k, name in enumerate(header):
            cells = [line[k] for line in lines]
            columns[name] = np.array(cells) if name == "stage" else np.array(cells, np.float64)
        if not set(_FIRST) <= set(columns):
            raise ValueError
        return Table(columns)
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror or error}.") from None
    except (ValueError, UnicodeDecodeError, csv.Error):
        raise UserError(f"{path} is not the metrics of a run.") from None
