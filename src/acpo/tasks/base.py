"""What a task is: observations, actions, one reward and a vector of costs, in batches.

Shapes: B environments, O observation numbers, K costs. A task is either pure JAX
(`DeviceTask`: the whole rollout is one compiled scan) or a simulator that lives on the
host (`HostTask`: stepped from Python). Both reset finished environments themselves and
hand over the observation that the episode really ended with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np

Array = jax.Array | np.ndarray

TRUST_REGION = ("acpo-cpo", "cpo", "crpo", "trpo")
"""Algorithms that make one step of the policy an iteration and fit their critics apart: tasks have other
settings for them (`defaults(algo)`)."""


@dataclass(frozen=True)
class Discrete:
    """Actions 0 … count − 1, given as an integer array [B]."""

    count: int


@dataclass(frozen=True)
class Box:
    """Real action vectors [B, size]; the task clips them to its own bounds."""

    size: int


@dataclass(frozen=True)
class TaskSpec:
    """The static facts of a task that learning needs."""

    name: str
    observation_size: int
    actions: Box | Discrete
    costs: tuple[str, ...]
    """One name for each cost; its length is K, and K may be 0."""
    episode_steps: int
    """The longest an episode can be."""


class TimeStep(NamedTuple):
    """What one step of B environments returns."""

    observation: Array
    """[B, O] to act on next: the first of a new episode where one has just ended."""
    final_observation: Array
    """[B, O] that this step led to, before any reset; equal to `observation` where none ended."""
    reward: Array
    """[B]"""
    costs: Array
    """[B, K]"""
    terminated: Array
    """[B] bool: the episode came to a true end; nothing follows it."""
    truncated: Array
    """[B] bool: the episode was cut (time limit, failed physics); its future still has a value."""
    failed: Array
    """[B] bool: the simulator broke down (non-finite state) and the episode was cut for it."""


class Reset(NamedTuple):
    """What B environments start with."""

    observation: Array
    """[B, O]"""
    elapsed: Array
    """[B] int: steps already on the clock. Clocks start at random phases, so that every batch
    finishes its share of episodes; a task that cannot do so gives zeros."""


class DeviceTask(eqx.Module):
    """A task in pure JAX. Its arrays are pytree leaves, so a batch of tasks is a `vmap`."""

    def spec(self) -> TaskSpec:
        raise NotImplementedError

    def reset(self, key: jax.Array, num_envs: int) -> tuple[Any, Reset]:
        """The state of `num_envs` environments, random keys included, and what they start with."""
        raise NotImplementedError

    def step(self, state: Any, actions: jax.Array) -> tuple[Any, TimeStep]:
        raise NotImplementedError


@runtime_checkable
class HostTask(Protocol):
    """A batch of environments simulated outside JAX. Everything it returns is NumPy."""

    num_envs: int

    def spec(self) -> TaskSpec: ...

    def reset(self, seed: int) -> Reset: ...

    def step(self, actions: np.ndarray) -> TimeStep: ...

    def save(self) -> dict[str, np.ndarray]:
        """Everything needed to go on bit for bit, generators included."""
        ...

    def load(self, saved: dict[str, np.ndarray]) -> None: ...

    def close(self) -> None: ...
