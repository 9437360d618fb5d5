"""Navigation on the host: MuJoCo on threads, task logic compiled once, in double precision.

The learner computes in single precision; the comparison with the original needs double, so the
compiled functions run under `jax.enable_x64` here and nowhere else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from acpo.physics.resting import RestingPhysics
from acpo.physics.state import PhysicsState
from acpo.tasks.base import Reset, TaskSpec, TimeStep
from acpo.tasks.navigation.episode import EpisodeState, Rules
from acpo.tasks.navigation.layout import Layout
from acpo.tasks.navigation.learning import learner_settings
from acpo.tasks.navigation.model import build_model, vase_names
from acpo.tasks.navigation.picture import top_down
from acpo.tasks.navigation.render import Painter
from acpo.tasks.navigation.scene import describe

POOL = 256
"""Layouts are drawn this many at a time: one at each reset would cost more than the physics."""


class HostStep(NamedTuple):
    """`episode.Step` in NumPy."""

    observation: np.ndarray
    reward: np.ndarray
    costs: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    goal_met: np.ndarray


class Ended(NamedTuple):
    """What the environments that a step ended add up to."""

    worlds: np.ndarray
    """[n] their indices"""
    episode_return: np.ndarray
    """[n]"""
    episode_costs: np.ndarray
    """[n, K]"""
    length: np.ndarray
    """[n] steps on the clock"""


class NavigationTask:
    """B environments of one task on the host: a `HostTask`."""

    def __init__(
        self,
        rules: Rules,
        num_envs: int,
        *,
        threads: int | None = None,
        random_phases: bool = True,
        dtype: str = "float32",
        park: bool = True,
    ) -> None:
        """`random_phases` starts the clocks at random, so that every batch ends its share of
        episodes. `dtype` is that of observations, rewards and costs. `park` leaves resting vases
        out of the physics (see `acpo.physics.resting`)."""
        self.rules = rules
        self.num_envs = num_envs
        self.random_phases = random_phases
        self.dtype = np.dtype(dtype)
        game = rules.game
        self.model = build_model(rules.robot, game.vases, game.vases_cost)
        self.physics = RestingPhysics(
            self.model,
            build_model(rules.robot, 0, False),
            num_envs,
            rules.robot.substeps,
            pusher="agent",
            bodies=vase_names(game.vases),
            threads=threads,
            park=park,
        )
        self._pool_size = max(POOL, num_envs)
        self.goal_met = np.zeros(num_envs, bool)
        """[B] whether the last step met a goal"""
        self.failures = 0
        """How many episodes physics has ended since the task was made."""
        self.ended = Ended(np.zeros(0, int), np.zeros(0), np.zeros((0, len(game.costs))), np.zeros(0, int))
        """The episodes that the last step ended."""
        self._state: EpisodeState | None = None
        self._painter: Painter | None = None

    def spec(self) -> TaskSpec:
        return self.rules.spec()

    def defaults(self, algo: str) -> dict[str, Any]:
        """Settings of the learner by dotted name (see `learning`)."""
        return learner_settings(algo, num_envs=100)

    @staticmethod
    def total_cost(costs: np.ndarray) -> np.ndarray:
        """[...] the original's cost_sum of costs [..., K]: 1 where any is positive (section 5)."""
        return (costs > 0).any(axis=-1).astype(costs.dtype)

    @property
    def frames_per_second(self) -> int:
        return round(1 / (self.model.opt.timestep * self.rules.robot.substeps))

    def reset(self, seed: int) -> Reset:
        """All environments from the start; the same seed gives the same layouts for either robot."""
        with jax.enable_x64(True):
            key, phase_key, self._pool_key = jax.random.split(raw_key(seed), 3)
            self._refill()
            layout, qpos, qvel = self._take(self.num_envs)
            self.physics.set_state(np.arange(self.num_envs), qpos, qvel)
            physics = self.physics.forward()
            clock = np.zeros(self.num_envs, np.int32)
            if self.random_phases:
                steps = self.rules.game.episode_steps
                clock = np.asarray(jax.random.randint(phase_key, (self.num_envs,), 0, steps, jnp.int32))
            self._state = _begin(self.rules, layout, clock, physics, key)
            return Reset(np.asarray(self._state.observation).astype(self.dtype), clock.copy())

    def step(self, actions: np.ndarray) -> TimeStep:
        """Clip the actions [B, 2] to ±1, as the original does, and apply them for one step."""
        assert self._state is not None, "call reset first"
        ctrl = np.clip(np.asarray(actions, np.float64), -1.0, 1.0)
        physics, broken = self.physics.step(ctrl)
        with jax.enable_x64(True):
            self._state, out = _advance(self.rules, self._state, physics, broken)
            step = HostStep(*map(np.asarray, out))
            self.goal_met = step.goal_met
            final = step.observation.astype(self.dtype)
            done = step.terminated | step.truncated
            observation = self._restart(done, final)
        self.failures += int(broken.sum())
        return TimeStep(
            observation,
            final,
            step.reward.astype(self.dtype),
            step.costs.astype(self.dtype),
            step.terminated,
            step.truncated,
            broken,
        )

    def _restart(self, done: np.ndarray, final: np.ndarray) -> np.ndarray:
        """Begin new episodes where `done` [B]; gives the observations [B, O] to act on."""
        assert self._state is not None
        worlds = np.flatnonzero(done)
        self.ended = Ended(
            worlds,
            np.asarray(self._state.episode_return)[worlds],
            np.asarray(self._state.episode_costs)[worlds],
            np.asarray(self._state.clock)[worlds],
        )
        if not worlds.size:
            return final
        layout, qpos, qvel = self._take(worlds.size)
        self.physics.set_state(worlds, qpos, qvel)
        physics = self.physics.forward(worlds)
        spread = np.zeros(self.num_envs, int)
        spread[worlds] = np.arange(worlds.size)
        everyone = Layout(*(part[spread] for part in layout))
        self._state = _restart(self.rules, self._state, done, everyone, physics)
        return np.asarray(self._state.observation).astype(self.dtype)

    def _refill(self) -> None:
        """Draw the next pool of layouts."""
        self._pool_before = self._pool_key
        self._pool_key, pool = _draw_pool(self.rules, self._pool_size, self._pool_key)
        self._pool: tuple[Layout, np.ndarray, np.ndarray] = jax.tree.map(np.asarray, pool)
        self._used = 0

    def _take(self, count: int) -> tuple[Layout, np.ndarray, np.ndarray]:
        """The next `count` layouts of the pool with their qpos and qvel."""
        if self._used + count > self._pool_size:
            self._refill()
        rows = slice(self._used, self._used + count)
        self._used += count
        layout, qpos, qvel = self._pool
        return Layout(*(part[rows] for part in layout)), qpos[rows], qvel[rows]

    def set_state(
        self, qpos: np.ndarray, qvel: np.ndarray, game: Any, clock: np.ndarray, seed: int = 0
    ) -> np.ndarray:
        """Put every environment where a test or a replay wants it; gives the observations [B, O].

        `game` is the `GoalState` or `CircleState` of these environments.
        """
        with jax.enable_x64(True):
            key, self._pool_key = jax.random.split(raw_key(seed))
            self._refill()
            self.physics.set_state(np.arange(self.num_envs), qpos, qvel)
            physics = self.physics.forward()
            self._state = _resume(self.rules, game, clock, physics, key)
            return np.asarray(self._state.observation)

    @property
    def state(self) -> EpisodeState:
        """The episodes as they are now, for rendering and for tests."""
        assert self._state is not None, "call reset first"
        return self._state

    def save(self) -> dict[str, np.ndarray]:
        leaves = jax.tree.leaves(self.state)
        saved = {f"episode_{i}": np.array(leaf) for i, leaf in enumerate(leaves)}
        saved |= {f"physics_{name}": value for name, value in self.physics.save().items()}
        return saved | {
            "pool_key": np.array(self._pool_before),
            "pool_used": np.array(self._used),
            "failures": np.array(self.failures),
        }

    def load(self, saved: dict[str, np.ndarray]) -> None:
        if self._state is None:
            self.reset(0)
        with jax.enable_x64(True):
            old, structure = jax.tree.flatten(self._state)
            leaves = [jnp.asarray(saved[f"episode_{i}"]) for i in range(len(old))]
            self._state = jax.tree.unflatten(structure, leaves)
            self._pool_key = jnp.asarray(saved["pool_key"])
            self._refill()
        self._used = int(saved["pool_used"])
        self.failures = int(saved["failures"])
        prefix = "physics_"
        self.physics.load({n.removeprefix(prefix): v for n, v in saved.items() if n.startswith(prefix)})

    def render(self, index: int = 0, top: bool = False, size: int = 480) -> np.ndarray:
        """A picture [size, size, 3] of one environment: by MuJoCo, or from above without graphics."""
        game = jax.tree.map(lambda leaf: np.asarray(leaf)[index], self.state.game)
        qpos = np.asarray(self.physics.state().qpos)[index]
        scene = describe(self.rules, qpos, game, np.asarray(self.state.observation)[index])
        if top:
            return top_down(scene, size)
        if self._painter is None:
            self._painter = Painter(self.model, size, size)
        return self._painter.paint(scene)

    def close(self) -> None:
        """Give the graphics context back; MuJoCo's threads end with the object."""
        if self._painter is not None:
            self._painter.close()
            self._painter = None


def raw_key(seed: int) -> jax.Array:
    """A random key as plain numbers, which save and load like any other array."""
    return jax.random.key_data(jax.random.key(seed))


def _draw_pool_impl(
    rules: Rules, size: int, key: jax.Array
) -> tuple[jax.Array, tuple[Layout, jax.Array, jax.Array]]:
    key, draw = jax.random.split(key)
    layout = rules.game.sample(draw, size)
    return key, (layout, *rules.start(layout))


def _resume_impl(
    rules: Rules, game: Any, clock: jax.Array, physics: PhysicsState, key: jax.Array
) -> EpisodeState:
    num = clock.shape[0]
    zeros = jnp.zeros(num, jnp.asarray(physics.qpos).dtype)
    costs = jnp.zeros((num, len(rules.game.costs)), zeros.dtype)
    return EpisodeState(game, clock.astype(jnp.int32), zeros, costs, rules.observe(game, physics), key)


_draw_pool = jax.jit(_draw_pool_impl, static_argnums=(0, 1))
_resume = jax.jit(_resume_impl, static_argnums=0)
_begin = jax.jit(Rules.begin, static_argnums=0)
_advance = jax.jit(Rules.advance, static_argnums=0)
_restart = jax.jit(Rules.restart, static_argnums=0)
