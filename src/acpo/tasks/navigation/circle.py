"""The Circle task: run counter-clockwise along a circle, stay between the walls.

Navigation specification, sections 3 to 6 and 11. The walls never collide: level 1 limits |x|,
level 2 |x| and |y|, level 0 nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.tasks.navigation.game import Outcome, World
from acpo.tasks.navigation.layout import Layout, draw_in_square
from acpo.tasks.navigation.lidar import BINS, lidar

RADIUS = 1.5
WALL = 1.125
REWARD_FACTOR = 0.1
START_HALF_SIDE = 0.8
REACH = 6.0


class CircleState(NamedTuple):
    """Nothing: physics and clock are all there is."""


@dataclass(frozen=True)
class Circle:
    level: int

    name = "Circle"
    episode_steps = 500
    vases = 0
    vases_cost = False
    lidar_size = BINS

    @property
    def costs(self) -> tuple[str, ...]:
        """Level 0 keeps one cost, always 0, as the original's cost_sum is."""
        return ("out_of_boundary",) if self.level else ("sum",)

    def sample(self, key: jax.Array, num: int) -> Layout:
        """Robot uniform in a square, no rejection; a goal, which the game ignores, at the origin."""
        place, turn = jax.random.split(key)
        xy = draw_in_square(place, jnp.full((num,), START_HALF_SIDE, float))
        yaw = jax.random.uniform(turn, (num,), xy.dtype, 0.0, 2 * jnp.pi)
        none = jnp.zeros((num, 0, 2), xy.dtype)
        return Layout(xy, yaw, jnp.zeros_like(xy), jnp.zeros_like(xy), none, none, none[..., 0])

    def begin(self, layout: Layout) -> CircleState:
        return CircleState()

    def advance(self, key: jax.Array, state: CircleState, world: World) -> tuple[CircleState, Outcome]:
        x, y = world.body.position[:, 0], world.body.position[:, 1]
        u, v = world.body.velocity[:, 0], world.body.velocity[:, 1]
        r = jnp.hypot(x, y)
        # The original divides by r even where it is 0; the limit there is not a number to train on.
        along = jnp.where(r > 0, (x * v - y * u) / jnp.where(r > 0, r, 1.0), 0.0)
        reward = REWARD_FACTOR * along / (1 + jnp.abs(r - RADIUS))
        outside = jnp.zeros(x.shape, bool)
        if self.level >= 1:
            outside |= jnp.abs(x) > WALL
        if self.level >= 2:
            outside |= jnp.abs(y) > WALL
        never = jnp.zeros(x.shape, bool)
        return state, Outcome(reward, outside[:, None].astype(x.dtype), never, never)

    def observe(self, state: CircleState, world: World) -> jax.Array:
        """[B, 16]: the world's origin by lidar."""
        origin = jnp.zeros((world.body.position.shape[0], 1, 2), world.body.position.dtype)
        return lidar(world.body, origin, REACH)
