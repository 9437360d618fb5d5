"""A training session: drives a trainer, and keeps whatever happens from being lost.

After every iteration the session remembers a state from which the run can go on exactly (arrays
are immutable, so this is a reference; host simulators give a copy). An interruption, a NaN or a
dying worker in the middle of an iteration therefore costs that iteration and nothing else.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from acpo import configure
from acpo.config import Config
from acpo.errors import UserError
from acpo.runs import arrays as storing
from acpo.runs import best as keeping
from acpo.runs import metrics as logging
from acpo.runs.best import Best
from acpo.runs.checkpoints import Checkpoint, Checkpoints
from acpo.runs.directory import RunDirectory
from acpo.runs.progress import Progress, Snapshot
from acpo.tasks.base import DeviceTask, HostTask
from acpo.training import Trainer, TrainState

SHARE = 0.01
"""Checkpoints spaced by time cost at most this share of it."""
SPACING = 10.0
"""Seconds between them at least."""


@dataclass(frozen=True)
class RunOptions:
    """How a run is kept; nothing here changes what is learned."""

    checkpoint_every: int = 0
    """Iterations between checkpoints; 0 spaces them by time so that they cost under 1 % of it."""
    keep: int = 3
    """Checkpoints kept; older ones are deleted."""
    tensorboard: bool = True
    """Write TensorBoard events."""
    wandb: str = ""
    """Also log to this Weights & Biases project (needs acpo[wandb])."""
    plots: bool = True
    """Draw learning curves at the end."""
    quiet: bool = False
    """Show no progress."""


class Safe(NamedTuple):
    """A point between two iterations."""

    state: TrainState
    simulators: list[dict[str, np.ndarray]]
    best: Best
    seconds: float
    """of training so far"""


class Session:
    """One stretch of training into one run directory."""

    def __init__(
        self,
        directory: RunDirectory,
        config: Config,
        task: DeviceTask | list[HostTask],
        desired: np.ndarray,
        options: RunOptions,
        progress: Progress,
        checkpoint: Checkpoint | None = None,
        resumed: bool = False,
    ) -> None:
        """`resumed`: go on with what the directory holds, from `checkpoint` or from the start."""
        self.directory, self.config, self.options, self.progress = directory, config, options, progress
        self.trainer = Trainer(config, task, desired)
        self.desired = np.asarray(desired)
        self.checkpoints = Checkpoints(directory.checkpoints, options.keep)
        self.overhead = 0.0
        """Seconds spent on logs, checkpoints and progress."""
        self._simulators = task if isinstance(task, list) else []
        best = keeping.start(self.trainer.state, len(self.trainer.spec.costs))
        self.safe = Safe(self.trainer.state, self._save_simulators(), best, 0.0)
        if checkpoint is not None:
            self._restore(checkpoint)
        upto = self.trainer.iteration if resumed else None
        if resumed:
            self.checkpoints.drop_after(self.trainer.iteration)
        seeds = [config.seed + s for s in range(config.seeds)]
        self._csv = logging.CsvLog(directory.metrics, upto)
        self._others: list[Any] = []
        if options.tensorboard:
            self._others.append(logging.EventLog(directory.tensorboard, seeds, upto))
        if options.wandb:
            name = directory.path.name
            self._others.append(logging.WandbLog(options.wandb, name, configure.to_dict(config)))
        self._saved_at: int | None = checkpoint.iteration if checkpoint else None
        self._saved_time = time.monotonic()
        self._save_cost = 0.0

    def run(self) -> None:
        """Train to the end. However it stops, the last good state is on disk afterwards."""
        began = time.perf_counter()
        first = self.trainer.iteration
        self.progress.start()
        try:
            with _terminated_like_interrupted():
                for _ in self._iterations(began, first):
                    pass
                self.save()
        except (KeyboardInterrupt, UserError):
            self._keep_last_good()
            raise
        except OSError as error:
            self._keep_last_good()
            raise UserError(f"Cannot write to {self.directory.path}: {error.strerror or error}.") from error
        finally:
            self.progress.stop()
            for log in (self._csv, *self._others):
                _try(log.close)

    def save(self) -> None:
        """Write a checkpoint of the last good state, unless there is one already."""
        safe = self.safe
        iteration = int(safe.state.iteration[0])
        if iteration == self._saved_at:
            return
        began = time.monotonic()
        named = storing.flatten(safe.state, "state") | storing.flatten(safe.best, "best")
        for s, simulator in enumerate(safe.simulators):
            named |= {f"simulator[{s}].{name}": np.asarray(value) for name, value in simulator.items()}
        for log in self._others:
            if isinstance(log, logging.EventLog):
                log.flush()
        self.checkpoints.save(iteration, named, {"seconds": safe.seconds})
        self._saved_at, self._saved_time = iteration, time.monotonic()
        self._save_cost = self._saved_time - began

    def _iterations(self, began: float, first: int) -> Iterator[None]:
        """Train, log, remember, save, show; one turn each."""
        earlier = self.safe.seconds
        steps = self.trainer.run()
        while True:
            acted = self.trainer.state
            metrics = next(steps, None)
            if metrics is None:
                return
            after = time.perf_counter()
            seconds = earlier + after - began
            rows = logging.rows(
                metrics, self.trainer.spec, self.config.seed, self.config.rollout.batch, seconds
            )
            self._csv.write(rows)
            for log in self._others:
                log.write(rows)
            best = keeping.update(self.safe.best, acted, metrics, self.desired)
            self.safe = Safe(self.trainer.state, self._save_simulators(), best, seconds)
            if self._due():
                self.save()
            self.progress.show(self._snapshot(metrics, after - began, first))
            self.overhead += time.perf_counter() - after
            yield

    def _due(self) -> bool:
        if self.options.checkpoint_every:
            return self.trainer.iteration % self.options.checkpoint_every == 0
        waited = time.monotonic() - self._saved_time
        return waited >= max(SPACING, self._save_cost / SHARE)

    def _snapshot(self, metrics: dict[str, Any], seconds: float, first: int) -> Snapshot:
        config, batch = self.config, self.config.rollout.batch
        done = self.trainer.iteration
        return Snapshot(
            steps=done * batch,
            total=config.iterations * batch,
            steps_per_second=batch * config.seeds / float(metrics["seconds"][0]),
            seconds_left=seconds / (done - first) * (config.iterations - done),
            reward=np.asarray(metrics["reward"]),
            costs=np.asarray(metrics["costs"]),
            desired=self.desired,
            budgets=np.asarray(metrics["budgets"]),
            reward_budget=np.asarray(metrics["reward_budget"]),
            stage=np.asarray(metrics["stage"]),
        )

    def _save_simulators(self) -> list[dict[str, np.ndarray]]:
        return [simulator.save() for simulator in self._simulators]

    def _restore(self, checkpoint: Checkpoint) -> None:
        state = storing.unflatten(self.trainer.state, checkpoint.arrays, "state")
        best = storing.unflatten(self.safe.best, checkpoint.arrays, "best")
        for s, simulator in enumerate(self._simulators):
            simulator.load(storing.under(checkpoint.arrays, f"simulator[{s}]."))
        self.trainer.state = state
        self.safe = Safe(state, self._save_simulators(), best, float(checkpoint.facts["seconds"]))

    def _keep_last_good(self) -> None:
        """Save without hiding the reason for stopping behind a failure to save."""
        _try(self.save)


def _try(action: Callable[[], None]) -> None:
    with suppress(UserError, OSError):
        action()


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM, as batch systems send it, stops a run the way Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
