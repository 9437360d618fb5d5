"""Budgets that go from a large value to the desired one along a set path (the paper's IPO-C)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.config import Config, CurriculumConfig
from acpo.learning.networks import Policy
from acpo.problem import MAX_REWARD, Problem, max_reward
from acpo.schedules.base import Report, Schedule


class CurriculumState(NamedTuple):
    desired: jax.Array
    """[K]"""
    start: jax.Array
    """[K] budget the path starts from, known after the first measurement"""
    budgets: jax.Array
    """[K] in force"""


def init(config: Config, desired: jax.Array, policy: Policy) -> CurriculumState:
    start = desired * config.curriculum.initial
    return CurriculumState(desired, start, start)


def easing(settings: CurriculumConfig, progress: jax.Array) -> jax.Array:
    """[] how much of the way from the start (1) to the desired budget (0) is left, for the shapes
    with an end."""
    left = jnp.clip(1 - progress / settings.end, 0.0, 1.0)
    return left if settings.shape == "linear" else 0.5 - 0.5 * jnp.cos(jnp.pi * left)


def update(
    config: Config, state: CurriculumState, returns: jax.Array, policy: Policy, iteration: jax.Array
) -> tuple[CurriculumState, Problem]:
    settings = config.curriculum
    progress = iteration / config.iterations
    start = jnp.where(iteration == 0, jnp.maximum(state.start, returns[1:]), state.start)
    if settings.shape == "knots":
        times, multiples = zip(*settings.knots, strict=True)
        budgets = state.desired * jnp.interp(progress, jnp.array(times), jnp.array(multiples))
    else:
        budgets = state.desired + easing(settings, progress) * (start - state.desired)
    return CurriculumState(state.desired, start, budgets), max_reward(budgets)


def report(state: CurriculumState) -> Report:
    return Report(
        budgets=state.budgets,
        reward_budget=jnp.zeros(()),
        stage=jnp.full((), MAX_REWARD, jnp.int32),
        events=jnp.zeros((), jnp.int32),
        finished=jnp.all(state.budgets <= state.desired),
    )


SCHEDULE = Schedule(init, update, report, anchor=None)
