"""What a run leaves on disk, and where.

    config.yaml        every setting; reloadable
    task.yaml          what the policy needs to know of its task (sizes, names of costs)
    metrics.csv        one row per iteration and seed (column `seed`)
    tensorboard/       events, a folder per seed
    checkpoints/       see `runs.checkpoints`
    evaluation.json    the last evaluation
    plots/             pictures made at the end of training
    .lock              held while a process trains here

All seeds of a run share its directory, because they are trained as one program.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from acpo import configure
from acpo.config import Config
from acpo.errors import UserError
from acpo.runs.disk import Lock, write_atomically, writing
from acpo.tasks.base import Box, Discrete, TaskSpec


@dataclass(frozen=True)
class RunDirectory:
    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def task(self) -> Path:
        return self.path / "task.yaml"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.csv"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def evaluation(self) -> Path:
        return self.path / "evaluation.json"

    @property
    def plots(self) -> Path:
        return self.path / "plots"

    def read_config(self) -> Config:
        values = _read_yaml(self.config)
        try:
            return configure.from_dict(values)
        except UserError as error:
            raise UserError(f"{self.config} cannot be used: {error}") from None

    def read_spec(self) -> TaskSpec:
        values = _read_yaml(self.task)
        try:
            kinds: dict[str, type[Box] | type[Discrete]] = {"box": Box, "discrete": Discrete}
            kind, size = values["actions"]["kind"], int(values["actions"]["size"])
            return TaskSpec(
                name=str(values["name"]),
                observation_size=int(values["observation_size"]),
                actions=kinds[kind](size),
                costs=tuple(str(name) for name in values["costs"]),
                episode_steps=int(values["episode_steps"]),
            )
        except (KeyError, TypeError, ValueError):
            raise UserError(f"{self.task} does not describe a task.") from None


def create(path: Path, config: Config, spec: TaskSpec) -> RunDirectory:
    """A new run directory. One that holds a run already is left alone and refused."""
    directory = RunDirectory(path)
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is a file; --out needs a directory.")
    _check_free(directory)
    actions = spec.actions
    task = dataclasses.asdict(spec) | {
        "costs": list(spec.costs),
        "actions": {
            "kind": "box" if isinstance(actions, Box) else "discrete",
            "size": actions.size if isinstance(actions, Box) else actions.count,
        },
    }
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        with Lock(path):
            _check_free(directory)  # another process may have been faster
            _write_yaml(directory.task, task)
            # The configuration comes last: where it is, the directory is a run.
            _write_yaml(directory.config, configure.to_dict(config))
    return directory


def _check_free(directory: RunDirectory) -> None:
    path = directory.path
    if directory.config.exists():
        raise UserError(
            f"{path} already holds a run; continue it with --resume {path} or choose another --out."
        )
    # What a start that failed, say on a full disk, may have left is no obstacle.
    ours = {Lock.NAME, directory.task.name}
    if path.is_dir() and any(p.name not in ours and p.suffix != ".partial" for p in path.iterdir()):
        raise UserError(f"{path} is not empty and holds no run; choose another --out.")


def write_config(directory: RunDirectory, config: Config) -> None:
    """Change the settings of a run that no process is training."""
    with writing(directory.path), Lock(directory.path):
        _write_yaml(directory.config, configure.to_dict(config))


def open_run(path: str | Path) -> RunDirectory:
    """An existing run, or a sentence that says why `path` is none."""
    path = Path(path)
    if not path.exists():
        raise UserError(f"There is no run at {path}: the directory does not exist.")
    if not path.is_dir():
        raise UserError(f"{path} is a file; a run is a directory.")
    directory = RunDirectory(path)
    if not directory.config.exists():
        inside = sorted(p.parent for p in path.glob("*/config.yaml"))
        hint = f"; did you mean {inside[0]}?" if inside else " (it has no config.yaml)."
        raise UserError(f"{path} is not a run{hint}")
    return directory


def fresh_path(task: str, algo: str, seed: int, root: Path = Path("runs")) -> Path:
    """A directory under `root` that does not exist yet, named for what is trained."""
    name = f"{task.replace(':', '.').replace('/', '.')}-{algo}-seed{seed}"
    candidates = [root / name, *(root / f"{name}-{i}" for i in range(2, 10_000))]
    return next(path for path in candidates if not path.exists())


def _write_yaml(path: Path, values: dict[str, Any]) -> None:
    write_atomically(path, yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=100))


def _read_yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror or error}.") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UserError(f"{path} is not valid YAML.") from None
