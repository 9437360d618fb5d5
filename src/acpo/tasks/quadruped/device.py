"""The Go1 in the compiled graph: the same rules as `native`, over MJX."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from acpo.physics.mjx import Bodies, Fields, MjxPhysics
from acpo.physics.state import Array, PhysicsState
from acpo.tasks.base import DeviceTask, Reset, TaskSpec, TimeStep
from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.learning import learner_settings
from acpo.tasks.quadruped.model import build_model
from acpo.tasks.quadruped.native import go1_spec
from acpo.tasks.quadruped.randomisation import draw_worlds, model_fields
from acpo.tasks.quadruped.rules import Episodes, Rules, choose, reported_return

MOST_CONTACTS = 28
"""Contacts of a Go1 on a plane at worst: a box's 4, 4 hips, 2 for each of 8 capsules, 4 feet."""
MOST_ROWS = 52
"""Constraints at worst: 4 for each foot's contact, 1 for each other one, 12 joint limits."""
GROUPS = 32
SMALLEST_GROUP = 8


class Go1State(NamedTuple):
    """B robots between steps."""

    episodes: Episodes
    bodies: Bodies
    fields: Fields
    """Constants of the model that differ between worlds; empty unless randomised."""
    failures: jax.Array
    """[] int32: worlds that broke down and were started again"""


class Go1Device(DeviceTask):
    """Go1s whose whole rollout is one compiled scan."""

    physics: MjxPhysics
    rules: Rules = eqx.field(static=True)

    @classmethod
    def create(cls, config: Go1Config, max_worlds: int, impl: str | None = None) -> Go1Device:
        """`impl` is "jax" or "warp", or None for the faster one here (see `MjxPhysics.create`)."""
        physics = MjxPhysics.create(
            build_model(config),
            config.decimation,
            worlds=max_worlds,
            contacts=MOST_CONTACTS,
            rows=MOST_ROWS,
            implementation=impl,
        )
        return cls(physics, Rules.of(config))

    def spec(self) -> TaskSpec:
        return go1_spec(self.rules.config)

    def defaults(self, algo: str) -> dict[str, Any]:
        """Settings of the learner by dotted name (see `learning`)."""
        return learner_settings(algo, num_envs=1024)

    def reported_return(self, returns: Array, lengths: Array) -> Array:
        """The paper's episode reward from sums of the learner's reward and the episodes' lengths."""
        return reported_return(self.rules.config, returns, lengths)

    @eqx.filter_jit
    def reset(self, key: jax.Array, num_envs: int) -> tuple[Go1State, Reset]:
        config = self.rules.config
        start_key, worlds_key = jax.random.split(key)
        fields: Fields = {}
        if config.randomises_worlds:
            worlds = draw_worlds(config, worlds_key, num_envs)
            fields = model_fields(build_model(config), worlds)._asdict()
        episodes, qpos, qvel = self.rules.begin(start_key, num_envs)
        bodies = self.physics.start(qpos, qvel)
        sensors = self.physics.sensors(bodies, self._at_rest(num_envs), fields)
        physics = PhysicsState(bodies.qpos, bodies.qvel, sensors)
        observation = self.rules.first_observation(episodes, physics)
        state = Go1State(episodes, bodies, fields, jnp.zeros((), jnp.int32))
        return state, Reset(observation, episodes.elapsed)

    @eqx.filter_jit
    def step(self, state: Go1State, actions: jax.Array) -> tuple[Go1State, TimeStep]:
        drive = self.rules.targets(state.episodes, actions)
        bodies = state.bodies
        if self.rules.config.push_steps:
            bodies = bodies._replace(qvel=bodies.qvel.at[:, :2].add(drive.push))
        bodies, physics, broken = self.physics.step(bodies, drive.ctrl, state.fields)
        outcome = self.rules.judge(state.episodes, physics, drive.action, broken)
        ended = outcome.terminated | outcome.truncated
        fresh = self.physics.start(outcome.qpos, outcome.qvel)
        bodies = Bodies(*(choose(ended, new, old) for new, old in zip(fresh, bodies, strict=True)))
        sensors = self._sensors_of(ended, bodies, state.fields)
        start = PhysicsState(bodies.qpos, bodies.qvel, sensors)
        first = self.rules.first_observation(outcome.episodes, start)
        failures = state.failures + outcome.failed.sum(dtype=jnp.int32)
        return Go1State(outcome.episodes, bodies, state.fields, failures), TimeStep(
            choose(ended, first, outcome.observation),
            outcome.observation,
            outcome.reward,
            outcome.costs,
            outcome.terminated,
            outcome.truncated,
            outcome.failed,
        )

    def _sensors_of(self, chosen: jax.Array, bodies: Bodies, fields: Fields) -> jax.Array:
        """[B, ns] sensors of the `chosen` [B] worlds, held at action 0; zero elsewhere.

        Few worlds end in one step, so a small group is computed at a time, as often as it takes:
        a thirtieth of what computing all would cost.
        """
        count = chosen.shape[0]
        group = min(count, max(SMALLEST_GROUP, count // GROUPS))
        order = jnp.nonzero(chosen, size=count + group, fill_value=count)[0]
        total = chosen.sum()
        ctrl = self._at_rest(group)

        def unfinished(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
            return carry[0] < total

        def next_group(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            done, sensors = carry
            ids = jax.lax.dynamic_slice(order, (done,), (group,))
            taken = jax.tree.map(lambda values: values.at[ids].get(mode="clip"), (bodies, fields))
            found = self.physics.sensors(taken[0], ctrl, taken[1])
            return done + group, sensors.at[ids].set(found, mode="drop")

        none = jnp.zeros((count, self.physics.template.sensordata.shape[-1]))
        return jax.lax.while_loop(unfinished, next_group, (jnp.zeros((), total.dtype), none))[1]

    def _at_rest(self, count: int) -> jax.Array:
        """[count, 12] the targets of action 0, which hold a robot at its start."""
        return jnp.tile(jnp.asarray(self.rules.config.default_pose), (count, 1))
