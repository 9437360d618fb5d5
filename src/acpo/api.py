"""The Python interface: `train`, `load`, `evaluate`.

run = acpo.train("PointGoal1", algo="acpo", budget=25, steps=1_000_000, seeds=3)
run.policy(observation)
acpo.evaluate(run, episodes=100).costs
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from acpo import configure
from acpo.config import Config
from acpo.errors import UserError
from acpo.runs import directory as directories
from acpo.runs import evaluation, metrics, progress, simulators
from acpo.runs import policy as policies
from acpo.runs.checkpoints import Checkpoint, Checkpoints
from acpo.runs.directory import RunDirectory
from acpo.runs.evaluation import Evaluation
from acpo.runs.metrics import Table
from acpo.runs.policy import TrainedPolicy, Which
from acpo.runs.session import RunOptions, Session
from acpo.runs.simulators import AnyTask, Source
from acpo.tasks.base import TaskSpec


@dataclass(frozen=True)
class Run:
    """A run on disk, finished or not."""

    directory: RunDirectory
    config: Config
    spec: TaskSpec
    task: AnyTask
    """What evaluations step: the name in the configuration, or the object given."""
    refused: list[str] = field(default_factory=list)
    """A sentence for each damaged checkpoint that was passed over."""
    overhead: float = 0.0
    """Share of the training time that logs, checkpoints and progress took; 0 for a loaded run."""

    @property
    def path(self) -> Path:
        return self.directory.path

    @property
    def metrics(self) -> Table:
        """Everything measured while training, a row per iteration and seed."""
        return metrics.read(self.directory.metrics)

    @property
    def seeds(self) -> list[int]:
        return [self.config.seed + s for s in range(self.config.seeds)]

    def policies(self, checkpoint: Which = "last") -> list[TrainedPolicy]:
        """The policy of every seed."""
        if checkpoint not in ("last", "best"):
            raise UserError(f"A checkpoint is 'best' or 'last', not {checkpoint!r}.")
        return policies.from_checkpoint(self._checkpoint, self.config, self.spec, checkpoint)

    def policy(self, observation: Any, deterministic: bool = True, seed: int | None = None) -> np.ndarray:
        """The action of the last policy for an observation [O], or for several [B, O].

        `seed` picks one of the run's seeds, by default the first.
        """
        return self._last[self._index(seed)](observation, deterministic)

    def policy_table(self, seed: int | None = None) -> np.ndarray:
        """π[step, state, action] on a tabular task."""
        from acpo.tasks.tabular import TabularCMDP  # noqa: PLC0415

        task = simulators.find(self.task, self.config.backend).make(1)
        if not isinstance(task, TabularCMDP):
            raise UserError(f"A policy table exists only for tabular tasks, not for {self.spec.name}.")
        return task.policy_table(self._last[self._index(seed)].policy)

    @functools.cached_property
    def _checkpoint(self) -> Checkpoint:
        checkpoint, refused = Checkpoints(self.directory.checkpoints).newest()
        if checkpoint is None:
            raise UserError(f"{self.path} has no checkpoint yet.")
        self.refused.extend(refused)
        return checkpoint

    @functools.cached_property
    def _last(self) -> list[TrainedPolicy]:
        return self.policies("last")

    def _index(self, seed: int | None) -> int:
        if seed is None:
            return 0
        if seed not in self.seeds:
            raise UserError(f"This run has the seeds {', '.join(map(str, self.seeds))}, not {seed}.")
        return self.seeds.index(seed)


def train(
    task: AnyTask | None = None,
    algo: str = "acpo",
    budget: Any = None,
    steps: int | float | None = None,
    seed: int | None = None,
    *,
    seeds: int | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    backend: str | None = None,
    preset: str = "default",
    options: RunOptions | None = None,
    **overrides: Any,
) -> Run:
    """Train and return the run.

    `task` is a registered name, "package.module:factory", a task object, or a function that makes
    a Gymnasium environment with costs. `budget` is a number for every cost, or one number per cost.
    Fields of `Config` are overridden by dotted name: `**{"ppo.clip": 0.1}`, or `ppo__clip=0.1`.
    `resume` continues a run; only `steps` may then change.
    """
    asked = {"budget": budget, "steps": steps, "seed": seed, "seeds": seeds, "backend": backend}
    changes = {name: value for name, value in asked.items() if value is not None}
    changes |= {name.replace("__", "."): value for name, value in overrides.items()}
    options = options or RunOptions(quiet=True)
    if resume is not None:
        return continue_run(resume, changes, options, task)
    if task is None:
        raise UserError(f"Nothing to train on: give a task, such as {simulators.registry.names()[0]}.")
    plan = prepare(task, algo, preset, changes)
    path = Path(out) if out else directories.fresh_path(plan.source.name, algo, plan.config.seed)
    return start_run(plan, path, options, task)


@dataclass(frozen=True)
class Plan:
    """A run that could be started: everything was checked and nothing was written."""

    source: Source
    config: Config
    desired: np.ndarray


def prepare(task: AnyTask, algo: str, preset: str = "default", changes: dict[str, Any] | None = None) -> Plan:
    changes = changes or {}
    # First what needs no simulator: its mistakes are told at once.
    named = task if isinstance(task, str) else "task"
    configure.build(algo, named, {"rollout.batch": 1_000_000_000, "rollout.envs": 1}, "default", {
        name: value for name, value in changes.items() if not name.startswith("rollout.")
    })  # fmt: skip
    source = simulators.find(task, str(changes.get("backend", "auto")))
    config = configure.build(algo, source.name, source.recommended(algo), preset, changes)
    config, desired = configure.desired_budgets(config, source.spec)
    return Plan(source, config, desired)


def start_run(plan: Plan, path: Path, options: RunOptions, task: AnyTask) -> Run:
    """Begin a new run in `path` and train to the end."""
    built = simulators.build(plan.source, plan.config)
    directory = directories.create(path, plan.config, plan.source.spec)
    return _train(plan, built, directory, options, task)


def continue_run(
    path: str | Path, changes: dict[str, Any], options: RunOptions, task: AnyTask | None = None
) -> Run:
    """Go on with a run from its last whole checkpoint, or from the start if it has none."""
    directory = directories.open_run(path)
    config = directory.read_config()
    other = [
        name
        for name in changes
        if name != "steps" and configure.coerce(name, changes[name]) != configure.get(config, name)
    ]
    if other:
        raise UserError(f"A resumed run keeps its settings, so {other[0]} cannot change; only steps can.")
    if "steps" in changes:
        config = dataclasses.replace(config, steps=configure.coerce("steps", changes["steps"]))
    task = config.task if task is None else task
    source = simulators.find(task, config.backend)
    config, desired = configure.desired_budgets(config, source.spec)
    checkpoint, refused = Checkpoints(directory.checkpoints).newest()
    done = checkpoint.iteration if checkpoint else 0
    if done > config.iterations:
        raise UserError(
            f"{path} has {done * config.rollout.batch} steps behind it, more than --steps asks for."
        )
    built = simulators.build(source, config)
    if config != directory.read_config():
        directories.write_config(directory, config)
    return _train(Plan(source, config, desired), built, directory, options, task, checkpoint, True, refused)


def _train(
    plan: Plan,
    built: Any,
    directory: RunDirectory,
    options: RunOptions,
    task: AnyTask,
    checkpoint: Checkpoint | None = None,
    resumed: bool = False,
    refused: list[str] | None = None,
) -> Run:
    config = plan.config
    shown = progress.choose(f"{config.algo} on {config.task}", plan.source.spec, options.quiet)
    try:
        session = Session(directory, config, built, plan.desired, options, shown, checkpoint, resumed)
        session.run()
    finally:
        if isinstance(built, list) and plan.source.fixed_envs is None:
            for simulator in built:
                simulator.close()
    seconds = session.safe.seconds
    run = Run(
        directory,
        config,
        plan.source.spec,
        task,
        refused or [],
        session.overhead / seconds if seconds else 0.0,
    )
    if options.plots:
        from acpo.report.curves import draw_run  # noqa: PLC0415

        draw_run(run.metrics, config, plan.source.spec, directory.plots)
    return run


def load(path: str | Path, task: AnyTask | None = None) -> Run:
    """A run from disk. `task` is needed only to evaluate a run that was trained on an object."""
    directory = directories.open_run(path)
    config = directory.read_config()
    return Run(directory, config, directory.read_spec(), config.task if task is None else task)


def evaluate(
    run: Run | str | Path,
    episodes: int = 100,
    deterministic: bool = True,
    checkpoint: Which = "last",
    seed: int = 0,
) -> Evaluation:
    """Play `episodes` with every seed's policy on fresh seeds; kept in the run's evaluation.json."""
    run = run if isinstance(run, Run) else load(run)
    if isinstance(episodes, bool) or not isinstance(episodes, int) or episodes < 1:
        raise UserError(f"episodes must be a whole number of at least 1, not {episodes!r}.")
    trained = run.policies(checkpoint)
    source = simulators.find(run.task, run.config.backend)
    if source.spec.observation_size != run.spec.observation_size or source.spec.actions != run.spec.actions:
        raise UserError(f"{source.name} is not the task that {run.path} was trained on: its sizes differ.")
    result = evaluation.evaluate(source, trained, run.config.budget, episodes, deterministic, seed)
    facts = result.facts | {"run": str(run.path), "algo": run.config.algo, "checkpoint": checkpoint}
    result = dataclasses.replace(result, facts=facts)
    try:
        directories.write_atomically(run.directory.evaluation, result.to_json())
    except OSError as error:
        raise UserError(f"Cannot write {run.directory.evaluation}: {error.strerror or error}.") from error
    return result
