"""Navigation in the compiled graph: physics by MJX, the same task logic, whole rollouts in one scan."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any

from acpo.physics.mjx import Bodies, MjxPhysics
from acpo.physics.state import PhysicsState
from acpo.tasks.base import DeviceTask, Reset, TaskSpec, TimeStep
from acpo.tasks.navigation.episode import EpisodeState, Rules
from acpo.tasks.navigation.layout import Layout
from acpo.tasks.navigation.learning import learner_settings
from acpo.tasks.navigation.model import build_model

SMALLEST_POOL = 256


class Pool(NamedTuple):
    """P episodes' beginnings, ready to take: drawn all at once, because to draw a few at every step
    would cost more than the physics."""

    layout: Layout
    bodies: Bodies
    sensordata: jax.Array
    """[P, ns]"""
    used: jax.Array
    """How many of them are taken."""
    key: jax.Array


class DeviceState(NamedTuple):
    """All that B environments are."""

    episodes: EpisodeState
    bodies: Bodies
    pool: Pool


class NavigationDeviceTask(DeviceTask):
    """B environments on the device."""

    physics: MjxPhysics
    rules: Rules = eqx.field(static=True)
    random_phases: bool = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        rules: Rules,
        num_envs: int,
        *,
        impl: str | None = None,
        max_worlds: int | None = None,
        random_phases: bool = True,
    ) -> NavigationDeviceTask:
        """`max_worlds` is the most environments that one program will step, all seeds together;
        `num_envs` where None. `impl` is "jax" or "warp" (None: what the machine has).
        `random_phases` starts the clocks at random."""
        model = build_model(rules.robot, rules.game.vases, rules.game.vases_cost)
        physics = MjxPhysics.create(
            model,
            rules.robot.substeps,
            worlds=max_worlds or num_envs,
            contacts=most_contacts(rules),
            implementation=impl,
        )
        return cls(physics, rules, random_phases)

    def spec(self) -> TaskSpec:
        return self.rules.spec()

    def defaults(self, algo: str) -> dict[str, Any]:
        """Settings of the learner by dotted name (see `learning`)."""
        return learner_settings(algo, num_envs=1000)

    def reset(self, key: jax.Array, num_envs: int) -> tuple[DeviceState, Reset]:
        phase_key, pool_key, key = jax.random.split(key, 3)
        pool = self._draw(pool_key, max(num_envs, SMALLEST_POOL))
        layout, bodies, sensordata = jax.tree.map(
            lambda values: values[:num_envs], (pool.layout, pool.bodies, pool.sensordata)
        )
        clock = jnp.zeros(num_envs, jnp.int32)
        if self.random_phases:
            steps = self.rules.game.episode_steps
            clock = jax.random.randint(phase_key, (num_envs,), 0, steps, jnp.int32)
        episodes = self.rules.begin(layout, clock, _state(bodies, sensordata), key)
        state = DeviceState(episodes, bodies, pool._replace(used=pool.used + num_envs))
        return state, Reset(episodes.observation, clock)

    def step(self, state: DeviceState, actions: jax.Array) -> tuple[DeviceState, TimeStep]:
        """Clip the actions [B, 2] to ±1, as the original does, and apply them for one step."""
        bodies, physics, broken = self.physics.step(state.bodies, jnp.clip(actions, -1.0, 1.0))
        episodes, out = self.rules.advance(state.episodes, physics, broken)
        done = out.terminated | out.truncated
        following = self._restart(DeviceState(episodes, bodies, state.pool), done)
        return following, TimeStep(
            following.episodes.observation,
            out.observation,
            out.reward,
            out.costs,
            out.terminated,
            out.truncated,
            broken,
        )

    def _restart(self, state: DeviceState, done: jax.Array) -> DeviceState:
        """New episodes from the pool where `done` [B]."""
        count = done.sum(dtype=jnp.int32)
        size = state.pool.sensordata.shape[0]
        empty = state.pool.used + count > size
        # Under a `vmap` over seeds a condition of their own would draw for all of them at every step.
        pool = jax.lax.cond(
            unvmap_any(empty),
            lambda: choose(empty, self._draw(state.pool.key, size), state.pool),
            lambda: state.pool,
        )
        # World by world the next of the pool; the index of a world that goes on does not matter.
        rows = jnp.clip(pool.used + jnp.cumsum(done, dtype=jnp.int32) - 1, 0, size - 1)
        layout, fresh, sensordata = jax.tree.map(
            lambda values: values[rows], (pool.layout, pool.bodies, pool.sensordata)
        )
        episodes = self.rules.restart(state.episodes, done, layout, _state(fresh, sensordata))
        bodies = Bodies(
            *(jnp.where(done[:, None], new, old) for new, old in zip(fresh, state.bodies, strict=True))
        )
        return DeviceState(episodes, bodies, pool._replace(used=pool.used + count))

    def _draw(self, key: jax.Array, size: int) -> Pool:
        key, draw = jax.random.split(key)
        layout = self.rules.game.sample(draw, size)
        bodies = self.physics.start(*self.rules.start(layout))
        sensordata = self.physics.sensors(bodies, jnp.zeros((size, 2), jnp.float32))
        return Pool(layout, bodies, sensordata, jnp.zeros((), jnp.int32), key)


def choose(condition: jax.Array, yes: Pool, no: Pool) -> Pool:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def most_contacts(rules: Rules) -> int:
    """Room for a world's contacts: the robot's with the floor (a Point never touches it, a Car on
    its wheels has 5), and for each vase four with the floor and a whole face with the robot or
    another vase. Driving into vases was seen to need 10 and 16 of it."""
    return (2 if rules.robot.name == "Point" else 14) + 12 * rules.game.vases


def _state(bodies: Bodies, sensordata: jax.Array) -> PhysicsState:
    return PhysicsState(bodies.qpos, bodies.qvel, sensordata)
