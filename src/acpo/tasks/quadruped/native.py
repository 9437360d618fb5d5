"""The Go1 on the host's threads: `mujoco.batch` for physics, one compiled call for everything else."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from acpo.physics.native import NativePhysics
from acpo.physics.state import PhysicsState
from acpo.tasks.base import Box, HostTask, Reset, TaskSpec, TimeStep
from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.costs import COSTS
from acpo.tasks.quadruped.learning import learner_settings
from acpo.tasks.quadruped.model import build_model
from acpo.tasks.quadruped.observation import SIZE
from acpo.tasks.quadruped.randomisation import Worlds, apply_to_batch, draw_worlds
from acpo.tasks.quadruped.reading import Reading, read
from acpo.tasks.quadruped.rules import Episodes, Rules, reported_return

_begin = jax.jit(Rules.begin, static_argnums=(0, 2))
_targets = jax.jit(Rules.targets, static_argnums=0)
_judge = jax.jit(Rules.judge, static_argnums=0)
_first_observation = jax.jit(Rules.first_observation, static_argnums=0)

_read = jax.jit(read, static_argnums=0)
_schedule = jax.jit(Rules.schedule, static_argnums=0)


def go1_spec(config: Go1Config) -> TaskSpec:
    """What learning needs to know of the task."""
    return TaskSpec("Go1", SIZE, Box(12), COSTS, config.episode_steps)


class Go1Native(HostTask):
    """B robots; `step` holds the targets for one control step (spec 2) and resets what ended.

    Results do not depend on the number of threads. Worlds that break down are reset and counted in
    `failures`.
    """

    def __init__(self, config: Go1Config, num_envs: int, threads: int | None = None) -> None:
        self.config = config
        self.num_envs = num_envs
        self.failures = 0
        self.physics = NativePhysics(build_model(config), num_envs, config.decimation, threads)
        self._rules = Rules.of(config)
        # The task's arithmetic is small: on a machine with a GPU it must not travel there and back.
        self._device = jax.devices("cpu")[0]
        self._ctrl = self.physics.batch.bind("ctrl")
        self._qvel = self.physics.batch.bind("qvel")
        self._episodes: Episodes | None = None
        self._worlds: Worlds | None = None

    def spec(self) -> TaskSpec:
        return go1_spec(self.config)

    def defaults(self, algo: str) -> dict[str, Any]:
        """Settings of the learner by dotted name (see `learning`)."""
        return learner_settings(algo, num_envs=512)

    def reported_return(self, returns: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The paper's episode reward from sums of the learner's reward and the episodes' lengths."""
        return np.asarray(reported_return(self.config, returns, lengths))

    def reset(self, seed: int) -> Reset:
        key = jax.device_put(jax.random.PRNGKey(seed), self._device)
        start_key, worlds_key = jax.random.split(key)
        if self.config.randomises_worlds:
            self._randomise(draw_worlds(self.config, worlds_key, self.num_envs))
        self.failures = 0
        self._episodes, qpos, qvel = _begin(self._rules, start_key, self.num_envs)
        everyone = np.ones(self.num_envs, bool)
        observation = self._start(everyone, np.asarray(qpos), np.asarray(qvel))
        return Reset(np.asarray(observation), np.asarray(self._episodes.elapsed))

    def step(self, actions: np.ndarray) -> TimeStep:
        drive = _targets(self._rules, self._running(), actions)
        if self.config.push_steps:
            self._qvel[:, :2] += np.asarray(drive.push)
        physics, broken = self.physics.step(np.asarray(drive.ctrl))
        outcome = _judge(self._rules, self._running(), physics, drive.action, broken)
        self._episodes = outcome.episodes
        failed = np.asarray(outcome.failed)
        terminated, truncated = np.asarray(outcome.terminated), np.asarray(outcome.truncated)
        final = np.asarray(outcome.observation)
        observation = final
        ended = terminated | truncated
        if ended.any():
            self.failures += int(failed.sum())
            first = self._start(ended, np.asarray(outcome.qpos), np.asarray(outcome.qvel))
            observation = np.where(ended[:, None], np.asarray(first), final)
        return TimeStep(
            observation,
            final,
            np.asarray(outcome.reward),
            np.asarray(outcome.costs),
            terminated,
            truncated,
            failed,
        )

    def save(self) -> dict[str, np.ndarray]:
        saved = {f"physics.{name}": value for name, value in self.physics.save().items()}
        parts: dict[str, Episodes | Worlds | None] = {"episodes": self._running(), "worlds": self._worlds}
        for part, values in parts.items():
            if values is not None:
                saved |= {f"{part}.{name}": np.array(value) for name, value in values._asdict().items()}
        return saved | {"failures": np.asarray(self.failures)}

    def load(self, saved: dict[str, np.ndarray]) -> None:
        def part(name: str) -> dict[str, np.ndarray]:
            return {key.partition(".")[2]: saved[key] for key in saved if key.startswith(name + ".")}

        self.physics.load(part("physics"))
        episodes = {name: jnp.array(value) for name, value in part("episodes").items()}
        self._episodes = jax.device_put(Episodes(**episodes), self._device)
        if part("worlds"):
            self._randomise(Worlds(**{name: jnp.array(value) for name, value in part("worlds").items()}))
        self.failures = int(saved["failures"])

    def close(self) -> None:
        """Nothing to let go of: the threads end with the batch."""

    def commands(self) -> np.ndarray:
        """[B, 3] the velocity commands in force."""
        return np.asarray(self._running().command)

    def set_commands(self, commands: np.ndarray) -> None:
        """Put commands [B, 3] in force until the next draw; the next observation shows them."""
        command = jax.device_put(jnp.array(commands, jnp.float32), self._device)
        self._episodes = self._running()._replace(command=command)

    def reading(self) -> Reading:
        """The robots as they stand now, sensors of the last step or reset included."""
        return _read(self._rules.robot, self.physics.state())

    def schedule(self) -> np.ndarray:
        """[B, 4] desired contact of each foot, 1 for stance."""
        return np.asarray(_schedule(self._rules, self._running()))

    def _running(self) -> Episodes:
        if self._episodes is None:
            raise RuntimeError("reset the task before stepping it")
        return self._episodes

    def _randomise(self, worlds: Worlds) -> None:
        self._worlds = worlds
        apply_to_batch(self.physics.batch, worlds)

    def _start(self, worlds: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> jax.Array:
        """Put `worlds` (mask [B]) at their starts; gives first observations, valid in those rows."""
        self.physics.set_state(worlds, qpos[worlds], qvel[worlds])
        # Held at action 0: the first contact states are those of a robot whose motors are on.
        self._ctrl[worlds] = self.config.default_pose
        physics: PhysicsState = self.physics.forward(worlds)
        return _first_observation(self._rules, self._running(), physics)
