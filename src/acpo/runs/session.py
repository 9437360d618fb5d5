"""A training session: drives a trainer, and keeps whatever happens from being lost.

After every iteration the session remembers a state from which the run can go on exactly (arrays
are immutable, so this is a reference; host simulators give a copy). An interruption, a NaN or a
dying worker in the middle of an iteration therefore costs that iteration and nothing else.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from acpo import configure
from acpo.config import Config
from acpo.errors import UserError
from acpo.runs import arrays as storing
from acpo.runs import best as keeping
from acpo.runs import disk
from acpo.runs import metrics as logging
from acpo.runs.best import Best
from acpo.runs.checkpoints import Checkpoint, Checkpoints
from acpo.runs.directory import RunDirectory
from acpo.runs.interruptions import Interruptions
from acpo.runs.progress import Progress, Silent, Snapshot
from acpo.tasks.base import DeviceTask, HostTask, TaskSpec
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
    converged: bool
    """Every seed's search for budgets has ended."""


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
        self.desired = np.asarray(desired)
        self.checkpoints = Checkpoints(directory.checkpoints, options.keep)
        self.overhead = 0.0
        """Seconds spent on logs, checkpoints and progress."""
        self._interruptions = Interruptions()
        self._simulators = task if isinstance(task, list) else []
        self._others: list[Any] = []
        self._lock = disk.Lock(directory.path)
        try:
            if resumed:
                _check_task((task[0] if isinstance(task, list) else task).spec(), directory)
            self.trainer = Trainer(config, task, desired)
            best = keeping.start(self.trainer.state, len(self.trainer.spec.costs))
            self.safe = Safe(self.trainer.state, self._save_simulators(), best, 0.0, False)
            if checkpoint is not None:
                self._restore(checkpoint)
            self.checkpoints.prepare(self.trainer.iteration)
            with disk.writing(directory.path):
                self._open_logs(self.trainer.iteration if resumed else None)
        except BaseException:
            self._lock.release()
            raise
        self._saved_at: int | None = checkpoint.iteration if checkpoint else None
        self._saved_time = time.monotonic()
        self.save_cost = 0.0
        """Seconds that the last checkpoint took."""

    def _open_logs(self, upto: int | None) -> None:
        """Begin the logs, or go on with them after iteration `upto`."""
        self._csv = logging.CsvLog(self.directory.metrics, upto)
        if self.options.tensorboard:
            seeds = [self.config.seed + s for s in range(self.config.seeds)]
            self._others.append(logging.EventLog(self.directory.tensorboard, seeds, upto))
        if self.options.wandb:
            name, values = self.directory.path.name, configure.to_dict(self.config)
            self._others.append(logging.WandbLog(self.options.wandb, name, values))

    def run(self) -> None:
        """Train to the end. However it stops, the last good state is on disk afterwards."""
        began = time.perf_counter()
        failure: BaseException | None = None
        with self._interruptions.listening():
            try:
                self._shown(self.progress.start)
                for _ in self._iterations(began, self.trainer.iteration):
                    self._interruptions.check()
            except BaseException as error:
                failure = error
            with self._interruptions.held():
                # What went wrong first is what is told: saving may then fail for the same reason.
                later = self._finish()
        failure = failure or later
        if failure is not None:
            raise failure

    def _finish(self) -> BaseException | None:
        """Save and close everything; gives the first failure."""
        began = time.perf_counter()
        failures: list[BaseException] = []
        self._shown(self.progress.stop)
        for action in (self.save, self._csv.close, *(log.close for log in self._others)):
            try:
                with disk.writing(self.directory.path):
                    action()
            except Exception as error:
                failures.append(error)
        self._lock.release()
        self.overhead += time.perf_counter() - began
        return failures[0] if failures else None

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
        facts = {"seconds": safe.seconds, "converged": safe.converged} | self._circumstances()
        with self._interruptions.held(), disk.writing(self.directory.path):
            # Rows come first: a checkpoint never knows of an iteration that the logs do not.
            self._csv.sync()
            for log in self._others:
                if isinstance(log, logging.EventLog):
                    log.flush()
            self.checkpoints.save(iteration, named, facts)
        self._saved_at, self._saved_time = iteration, time.monotonic()
        self.save_cost = self._saved_time - began

    def _iterations(self, began: float, first: int) -> Iterator[None]:
        """Train, log, remember, save, show; one turn each."""
        earlier = self.safe.seconds
        steps = self.trainer.run()
        while not (self.safe.converged and self.config.adversarial.stop_when_converged):
            acted = self.trainer.state
            # A compiled iteration may call back into Python (Warp), where an exception is lost and
            # leaves torn memory; a simulator on the host may hang, and must be stopped wherever it is.
            with nullcontext() if self._simulators else self._interruptions.held():
                metrics = next(steps, None)
            if metrics is None:
                return
            after = time.perf_counter()
            seconds = earlier + after - began
            rows = logging.rows(
                metrics, self.trainer.spec, self.config.seed, self.config.rollout.batch, seconds
            )
            with disk.writing(self.directory.path):
                for log in (self._csv, *self._others):
                    log.write(rows)
            best = keeping.update(self.safe.best, acted, metrics, self.desired)
            converged = bool(np.all(metrics["finished"]))
            self.safe = Safe(self.trainer.state, self._save_simulators(), best, seconds, converged)
            if self._due():
                self.save()
            self._shown(self.progress.show, self._snapshot(metrics, after - began, first))
            self.overhead += time.perf_counter() - after
            yield

    def _shown(self, action: Callable[..., None], *arguments: Any) -> None:
        """A terminal or a pipe that is gone does not end the training behind it."""
        try:
            action(*arguments)
        except OSError:
            self.progress = Silent()

    def _due(self) -> bool:
        if self.options.checkpoint_every:
            return self.trainer.iteration % self.options.checkpoint_every == 0
        waited = time.monotonic() - self._saved_time
        return waited >= max(SPACING, self.save_cost / SHARE)

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
        facts, now = checkpoint.facts, self._circumstances()
        if facts.get("simulator", now["simulator"]) != now["simulator"]:
            raise UserError(
                f"{self.directory.path} was trained with its simulator {facts['simulator']}, but here backend"
                f" {self.config.backend} has it {now['simulator']}; write the other backend into"
                f" {self.directory.config}, native or mjx."
            )
        changed = [name for name in now if facts.get(name, now[name]) != now[name]]
        if changed:
            was = ", ".join(f"{name} {facts[name]}" for name in changed)
            warnings.warn(
                f"This run was trained with {was}; it goes on, but not bit for bit as it would have there.",
                stacklevel=2,
            )
        try:
            state = storing.unflatten(self.trainer.state, checkpoint.arrays, "state")
            best = storing.unflatten(self.safe.best, checkpoint.arrays, "best")
            for s, simulator in enumerate(self._simulators):
                simulator.load(storing.under(checkpoint.arrays, f"simulator[{s}]."))
        except UserError as error:
            raise UserError(f"Cannot go on from {checkpoint.path}: {error}") from error
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise UserError(
                f"Cannot go on from {checkpoint.path}: the task's simulator does not take back what it saved"
                f" ({type(error).__name__}: {error})."
            ) from error
        self.trainer.state = state
        seconds, converged = float(facts["seconds"]), bool(facts.get("converged", False))
        self.safe = Safe(state, self._save_simulators(), best, seconds, converged)

    def _circumstances(self) -> dict[str, str]:
        """What a resumed run should find again if it is to be exact."""
        return {
            "simulator": "on the host" if self._simulators else "in the graph",
            "device": jax.default_backend(),
            "jax": jax.__version__,
        }


def _check_task(spec: TaskSpec, directory: RunDirectory) -> None:
    """The task is still what the run began with."""
    before = directory.read_spec()
    for name in ("observation_size", "actions", "costs", "episode_steps"):
        was, now = getattr(before, name), getattr(spec, name)
        if was != now:
            raise UserError(
                f"The task has changed since {directory.path} began: {name} was {was} and is {now}."
            )
