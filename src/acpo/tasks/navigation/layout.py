"""Where robot, goal, hazards and vases start: rejection sampling as the original does it.

Navigation specification, section 6. Objects are placed one after the other; a point is rejected
when it comes nearer to an object already placed than the sum of their keepouts. The first goal
takes part in that and is then thrown away: a second one is drawn against the finished layout, so
hazards and vases keep clear of a goal that nobody sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

AGENT_KEEPOUT = 0.4
GOAL_KEEPOUT = 0.305
HAZARD_KEEPOUT = 0.18
VASE_KEEPOUT = 0.15
TRIES_PER_OBJECT = 100
TRIES_PER_GOAL = 10_000

Carry = tuple[jax.Array, jax.Array, jax.Array, jax.Array]


class Layout(NamedTuple):
    """Starting places of B worlds, with H hazards and V vases."""

    agent_xy: jax.Array
    """[B, 2]"""
    agent_yaw: jax.Array
    """[B]"""
    goal_xy: jax.Array
    """[B, 2]"""
    discarded_goal_xy: jax.Array
    """[B, 2] the goal that took part in placing the others"""
    hazards_xy: jax.Array
    """[B, H, 2]"""
    vases_xy: jax.Array
    """[B, V, 2]"""
    vases_yaw: jax.Array
    """[B, V]"""


@dataclass(frozen=True)
class Placement:
    """How many objects, and the half side of the square they are placed in."""

    half: float
    hazards: int
    vases: int

    def keepouts(self) -> np.ndarray:
        """[2 + H + V] in placing order: agent, goal, hazards, vases."""
        return np.array(
            [AGENT_KEEPOUT, GOAL_KEEPOUT] + [HAZARD_KEEPOUT] * self.hazards + [VASE_KEEPOUT] * self.vases
        )


def draw_in_square(key: jax.Array, half_side: jax.Array) -> jax.Array:
    """[B, 2] uniform within ± half_side [B]."""
    shape = (*half_side.shape, 2)
    return half_side[..., None] * jax.random.uniform(key, shape, half_side.dtype, -1.0, 1.0)


def sample_layouts(key: jax.Array, num: int, placement: Placement) -> Layout:
    """`num` independent layouts, in the precision JAX computes in.

    All worlds go through the original's loop side by side: each holds the index of the object it
    is placing, and starts over when one object has failed 100 times.
    """
    keepouts = jnp.asarray(placement.keepouts(), float)
    count = keepouts.shape[0]
    key, yaw_key, vase_key, goal_key = jax.random.split(key, 4)
    worlds = jnp.arange(num)

    def unfinished(carry: Carry) -> jax.Array:
        return (carry[2] < count).any()

    def attempt(carry: Carry) -> Carry:
        key, places, index, tries = carry
        key, draw = jax.random.split(key)
        current = jnp.minimum(index, count - 1)
        point = draw_in_square(draw, placement.half - keepouts[current])
        gap = jnp.linalg.norm(places - point[:, None], axis=-1)
        clash = (gap < keepouts + keepouts[current][:, None]) & (jnp.arange(count) < index[:, None])
        placing = index < count
        fits = placing & ~clash.any(axis=1)
        places = places.at[worlds, current].set(jnp.where(fits[:, None], point, places[worlds, current]))
        tries = jnp.where(fits, 0, tries + placing)
        stuck = tries >= TRIES_PER_OBJECT
        index = jnp.where(stuck, 0, index + fits)
        return key, places, index, jnp.where(stuck, 0, tries)

    begin = (key, jnp.zeros((num, count, 2), keepouts.dtype), jnp.zeros(num, int), jnp.zeros(num, int))
    places = jax.lax.while_loop(unfinished, attempt, begin)[1]

    agent, first_goal = places[:, 0], places[:, 1]
    hazards, vases = places[:, 2 : 2 + placement.hazards], places[:, 2 + placement.hazards :]
    everyone = jnp.ones(num, bool)
    goal, _ = draw_goals(
        goal_key, placement, everyone, first_goal, agent_xy=agent, hazards_xy=hazards, vases_xy=vases
    )
    turn = 2 * jnp.pi
    return Layout(
        agent,
        jax.random.uniform(yaw_key, (num,), places.dtype, 0.0, turn),
        goal,
        first_goal,
        hazards,
        vases,
        jax.random.uniform(vase_key, (num, placement.vases), places.dtype, 0.0, turn),
    )


def draw_goals(
    key: jax.Array,
    placement: Placement,
    wanted: jax.Array,
    goal_xy: jax.Array,
    *,
    agent_xy: jax.Array,
    hazards_xy: jax.Array,
    vases_xy: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """New goals [B, 2] where `wanted` [B], the old `goal_xy` elsewhere; and where none was found [B].

    Agent [B, 2] and vases [B, V, 2] count with their present places, hazards [B, H, 2] are fixed,
    and the old goal does not count. The original gives up after 10000 tries, never seen.
    """
    others = jnp.concatenate([agent_xy[:, None], hazards_xy, vases_xy], axis=1)
    keepouts = jnp.asarray(np.delete(placement.keepouts(), 1), others.dtype) + GOAL_KEEPOUT
    half_side = jnp.full(wanted.shape, placement.half - GOAL_KEEPOUT, others.dtype)

    def missing(carry: Carry) -> jax.Array:
        return carry[2].any() & (carry[3] < TRIES_PER_GOAL)

    def attempt(carry: Carry) -> Carry:
        key, goal, lacking, tries = carry
        key, draw = jax.random.split(key)
        point = draw_in_square(draw, half_side)
        fits = (jnp.linalg.norm(others - point[:, None], axis=-1) >= keepouts).all(axis=1)
        goal = jnp.where((lacking & fits)[:, None], point, goal)
        return key, goal, lacking & ~fits, tries + 1

    _, goal, lacking, _ = jax.lax.while_loop(
        missing, attempt, (key, goal_xy, wanted, jnp.zeros((), jnp.int32))
    )
    return goal, lacking
