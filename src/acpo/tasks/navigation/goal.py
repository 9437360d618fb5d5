"""The Goal task: reach one goal after another, keep off the hazards, mind the vases.

Navigation specification, sections 3 to 6 and 11. Level 0 has no hazards, level 1 eight of them
and one vase that costs nothing, level 2 ten of each and vases that cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.tasks.navigation.game import Outcome, World
from acpo.tasks.navigation.layout import Layout, Placement, draw_goals, sample_layouts
from acpo.tasks.navigation.lidar import BINS, lidar

GOAL_RADIUS = 0.3
GOAL_BONUS = 1.0
HAZARD_RADIUS = 0.2
VASE_SPEED = 1e-4
"""Slower vases count as standing still (section 11)."""
REACH = 3.0

_PLACEMENTS = (Placement(1.0, 0, 0), Placement(1.5, 8, 1), Placement(2.0, 10, 10))
_COSTS = (("sum",), ("hazards",), ("hazards", "vases_contact", "vases_velocity"))


class GoalState(NamedTuple):
    """What an episode remembers beside physics and clock."""

    goal_xy: jax.Array
    """[B, 2]"""
    hazards_xy: jax.Array
    """[B, H, 2]"""
    last_distance: jax.Array
    """[B] from the robot to the goal, after the step before"""


@dataclass(frozen=True)
class Goal:
    level: int

    name = "Goal"
    episode_steps = 1000

    @property
    def placement(self) -> Placement:
        return _PLACEMENTS[self.level]

    @property
    def vases(self) -> int:
        return self.placement.vases

    @property
    def costs(self) -> tuple[str, ...]:
        """Level 0 keeps one cost, always 0, as the original's cost_sum is."""
        return _COSTS[self.level]

    @property
    def vases_cost(self) -> bool:
        return self.level == 2

    @property
    def lidar_size(self) -> int:
        return BINS * (3 if self.placement.hazards else 1)

    def sample(self, key: jax.Array, num: int) -> Layout:
        return sample_layouts(key, num, self.placement)

    def begin(self, layout: Layout) -> GoalState:
        return GoalState(layout.goal_xy, layout.hazards_xy, distance(layout.agent_xy, layout.goal_xy))

    def advance(self, key: jax.Array, state: GoalState, world: World) -> tuple[GoalState, Outcome]:
        """Reward and costs of the world that a step led to, and the goal that is in force next.

        Both refer to the old goal; the jump to a new one is never rewarded (section 4).
        """
        agent_xy = world.body.position[:, :2]
        to_goal = distance(agent_xy, state.goal_xy)
        met = to_goal <= GOAL_RADIUS
        reward = state.last_distance - to_goal + GOAL_BONUS * met

        def draw() -> tuple[jax.Array, jax.Array]:
            return draw_goals(
                key,
                self.placement,
                met,
                state.goal_xy,
                agent_xy=agent_xy,
                hazards_xy=state.hazards_xy,
                vases_xy=world.vases_xy,
            )

        goal_xy, stuck = jax.lax.cond(met.any(), draw, lambda: (state.goal_xy, jnp.zeros_like(met)))
        following = GoalState(goal_xy, state.hazards_xy, jnp.where(met, distance(agent_xy, goal_xy), to_goal))
        return following, Outcome(reward, self._costs(agent_xy, state.hazards_xy, world), met, stuck)

    def _costs(self, agent_xy: jax.Array, hazards_xy: jax.Array, world: World) -> jax.Array:
        """[B, K], each 0 or 1: the depth of an intrusion does not count (section 0, item 1)."""
        if not self.placement.hazards:
            return jnp.zeros((agent_xy.shape[0], 1), agent_xy.dtype)
        inside = (distance(agent_xy[:, None], hazards_xy) < HAZARD_RADIUS).any(axis=1)
        entries = [inside]
        if self.vases_cost:
            entries += [world.vases_touched.any(axis=1), (world.vases_speed >= VASE_SPEED).any(axis=1)]
        return jnp.stack(entries, axis=1).astype(agent_xy.dtype)

    def observe(self, state: GoalState, world: World) -> jax.Array:
        """[B, 16 or 48]: goal, hazards and vases, each by its own lidar."""
        targets = [state.goal_xy[:, None]]
        if self.placement.hazards:
            targets += [state.hazards_xy, world.vases_xy]
        return jnp.concatenate([lidar(world.body, places, REACH) for places in targets], axis=1)


def distance(a: jax.Array, b: jax.Array) -> jax.Array:
    """[...] between points [..., 2]."""
    return jnp.hypot(a[..., 0] - b[..., 0], a[..., 1] - b[..., 1])
