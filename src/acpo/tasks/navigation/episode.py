"""One step of B episodes, given what physics made of the actions: pure and for both backends.

Navigation specification, section 2: reward and cost of the final state and the old goal, a new
goal where one was met, the clock, the observation. Physics is the backend's affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.physics.state import PhysicsState
from acpo.tasks.base import Box, TaskSpec
from acpo.tasks.navigation.circle import Circle, CircleState
from acpo.tasks.navigation.game import VASE_HALF_SIZE, VASE_SINK, World, read_world
from acpo.tasks.navigation.goal import Goal, GoalState
from acpo.tasks.navigation.layout import Layout
from acpo.tasks.navigation.robot import Robot, quaternion_about_z

REWARD_CLIP = 10.0
FAILURE_REWARD = -10.0
"""What the original means to give for a physics exception (section 7)."""


class EpisodeState(NamedTuple):
    """All that B episodes are, beside physics."""

    game: GoalState | CircleState
    clock: jax.Array
    """[B] int32 steps taken"""
    episode_return: jax.Array
    """[B] rewards of the episode so far"""
    episode_costs: jax.Array
    """[B, K] costs of the episode so far"""
    observation: jax.Array
    """[B, O] the last one given"""
    key: jax.Array


class Step(NamedTuple):
    """What one step of B episodes gives, before any reset."""

    observation: jax.Array
    """[B, O]"""
    reward: jax.Array
    """[B]"""
    costs: jax.Array
    """[B, K]"""
    terminated: jax.Array
    """[B] bool"""
    truncated: jax.Array
    """[B] bool"""
    goal_met: jax.Array
    """[B] bool"""


@dataclass(frozen=True)
class Rules:
    """A robot in a game: what makes a task, as a value that compiled functions depend on."""

    robot: Robot
    game: Goal | Circle

    def spec(self) -> TaskSpec:
        return TaskSpec(
            name=f"{self.robot.name}{self.game.name}{self.game.level}",
            observation_size=self.robot.sensor_size + self.game.lidar_size,
            actions=Box(2),
            costs=self.game.costs,
            episode_steps=self.game.episode_steps,
        )

    def world(self, physics: PhysicsState) -> World:
        return read_world(self.robot, self.game.vases, self.game.vases_cost, physics)

    def start(self, layout: Layout) -> tuple[jax.Array, jax.Array]:
        """qpos [B, nq] and qvel [B, nv] in which worlds of this layout begin: all at rest."""
        num, vases = layout.vases_yaw.shape
        height = jnp.full((num, vases, 1), VASE_HALF_SIZE - VASE_SINK, layout.agent_xy.dtype)
        boxes = jnp.concatenate([layout.vases_xy, height, quaternion_about_z(layout.vases_yaw)], axis=2)
        robot = self.robot.start(layout.agent_xy, layout.agent_yaw)
        qpos = jnp.concatenate([robot, boxes.reshape(num, 7 * vases)], axis=1)
        return qpos, jnp.zeros((num, self.robot.nv + 6 * vases), qpos.dtype)

    def begin(self, layout: Layout, clock: jax.Array, physics: PhysicsState, key: jax.Array) -> EpisodeState:
        """Episodes of this layout [B] with `clock` [B] steps already on the clock."""
        game = self.game.begin(layout)
        num, dtype = clock.shape[0], layout.agent_xy.dtype
        return EpisodeState(
            game,
            clock.astype(jnp.int32),
            jnp.zeros(num, dtype),
            jnp.zeros((num, len(self.game.costs)), dtype),
            self.observe(game, physics),
            key,
        )

    def observe(self, game: GoalState | CircleState, physics: PhysicsState) -> jax.Array:
        """[B, O]: sensors, then lidar."""
        sensors = self.robot.sensors(jnp.asarray(physics.sensordata))
        return jnp.concatenate([sensors, self.game.observe(game, self.world(physics))], axis=1)  # type: ignore[arg-type]

    def advance(
        self, state: EpisodeState, physics: PhysicsState, broken: jax.Array
    ) -> tuple[EpisodeState, Step]:
        """What the step that led to `physics` gives; `broken` [B] names worlds that hold no sense.

        Those end as a truncation with a penalty; their numbers are the last good ones.
        """
        key, draw = jax.random.split(state.key)
        game, outcome = self.game.advance(draw, state.game, self.world(physics))  # type: ignore[arg-type]
        clock = state.clock + 1
        reward = jnp.clip(outcome.reward, -REWARD_CLIP, REWARD_CLIP)
        reward = jnp.where(broken, FAILURE_REWARD, reward)
        costs = jnp.where(broken[:, None], 0.0, outcome.costs)
        observation = jnp.where(broken[:, None], state.observation, self.observe(game, physics))
        following = EpisodeState(
            game, clock, state.episode_return + reward, state.episode_costs + costs, observation, key
        )
        return following, Step(
            observation,
            reward,
            costs,
            outcome.stuck & ~broken,
            (clock >= self.game.episode_steps) | broken,
            outcome.goal_met & ~broken,
        )

    def restart(
        self, state: EpisodeState, done: jax.Array, layout: Layout, physics: PhysicsState
    ) -> EpisodeState:
        """`layout` [B] from the start where `done` [B], the present episodes elsewhere."""
        fresh = self.begin(layout, jnp.zeros_like(state.clock), physics, state.key)

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(done.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        # The key belongs to the batch and not to a world.
        game, clock, total, costs, observation = jax.tree.map(choose, fresh[:-1], state[:-1])
        return EpisodeState(game, clock, total, costs, observation, state.key)
