"""Collecting a batch: inside the graph from a device task, step by step from a host simulator.

T steps, B environments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from acpo.learning import normaliser as normalisation
from acpo.learning.networks import Policy
from acpo.learning.normaliser import Normaliser
from acpo.tasks.base import DeviceTask, HostTask, TimeStep

Array = jax.Array | np.ndarray


class Rollout(NamedTuple):
    """Every array has leading axes [T, B]."""

    observations: Array
    """[T, B, O] raw, acted on"""
    actions: Array
    steps: TimeStep
    """what each action led to"""


def act(policy: Policy, normaliser: Normaliser | None, observation: jax.Array, key: jax.Array) -> jax.Array:
    """Sampled actions for raw observations [B, O]; no normaliser means none is used."""
    if normaliser is not None:
        observation = normalisation.apply(normaliser, observation)
    return policy.distribution(observation).sample(key)


def collect(
    task: DeviceTask,
    task_state: Any,
    observation: jax.Array,
    policy: Policy,
    normaliser: Normaliser | None,
    key: jax.Array,
    steps: int,
) -> tuple[Any, jax.Array, Rollout]:
    """`steps` steps of every environment in one scan → (task state, observation [B, O], rollout)."""

    def step(carry: tuple[Any, jax.Array], key: jax.Array) -> tuple[tuple[Any, jax.Array], Rollout]:
        state, observation = carry
        actions = act(policy, normaliser, observation, key)
        state, result = task.step(state, actions)
        return (state, jnp.asarray(result.observation)), Rollout(observation, actions, result)

    (task_state, observation), rollout = jax.lax.scan(
        step, (task_state, observation), jax.random.split(key, steps)
    )
    return task_state, observation, rollout


Acting = Callable[[list[np.ndarray], int], np.ndarray]


def collect_from_host(
    tasks: list[HostTask], observations: list[np.ndarray], acting: Acting, steps: int
) -> tuple[list[np.ndarray], Rollout]:
    """`steps` steps of each simulator, one simulator a seed.

    `acting(observations of every seed, step)` gives actions [S, B, …]. The rollout's arrays are
    [S, T, B, …].
    """
    first = acting(observations, 0)
    seeds, envs = len(tasks), tasks[0].num_envs
    spec = tasks[0].spec()

    def room(*shape: int, dtype: Any = np.float32) -> np.ndarray:
        return np.empty((seeds, steps, envs, *shape), dtype)

    size, costs = spec.observation_size, len(spec.costs)
    rollout = Rollout(
        observations=room(size),
        actions=np.empty((seeds, steps, *first.shape[1:]), first.dtype),
        steps=TimeStep(
            observation=np.empty((seeds, 0), np.float32),
            final_observation=room(size),
            reward=room(),
            costs=room(costs),
            terminated=room(dtype=bool),
            truncated=room(dtype=bool),
            failed=room(dtype=bool),
        ),
    )
    actions = first
    for t in range(steps):
        if t:
            actions = acting(observations, t)
        for s, task in enumerate(tasks):
            result = task.step(actions[s])
            rollout.observations[s, t] = observations[s]
            rollout.actions[s, t] = actions[s]
            for name in ("final_observation", "reward", "costs", "terminated", "truncated", "failed"):
                getattr(rollout.steps, name)[s, t] = getattr(result, name)
            observations[s] = np.asarray(result.observation, np.float32)
    return observations, rollout
