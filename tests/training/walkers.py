"""Small tasks with continuous actions, in JAX and in NumPy, that can be told to break."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from acpo.config import Config, replace
from acpo.tasks.base import Box, DeviceTask, Reset, TaskSpec, TimeStep

HORIZON = 4
ENVS = 8
BATCH = 64
SMALL: dict[str, Any] = {
    "steps": 64 * 100,
    "rollout.envs": ENVS,
    "rollout.batch": BATCH,
    "network.hidden": (8,),
    "ppo.minibatch": 16,
    "ppo.passes": 2,
    "critic.minibatch": 16,
    "critic.passes": 1,
    "trust_region.cg_iterations": 5,
    "advantage.discount": 0.9,
    "advantage.cost_discount": 0.9,
}
NONE, OBSERVATION, REWARD, COST, HUGE = range(5)


def config(algo: str = "acpo", **changes: Any) -> Config:
    dotted = {name.replace("__", "."): value for name, value in changes.items()}
    return replace(Config(algo=algo), SMALL | dotted)


class WalkState(NamedTuple):
    place: jax.Array
    clock: jax.Array
    total: jax.Array
    """[] steps since the reset"""
    key: jax.Array


class Walk(DeviceTask):
    """One number, moved by the mean of two actions; near 1 is rewarded, being over i/10 costs in
    cost i. Ends truly beyond ±3, is cut after four steps.

    From the step `at` on, environment `which` shows the fault `kind`.
    """

    kind: jax.Array
    which: jax.Array
    at: jax.Array
    costs: int = eqx.field(static=True)

    def __init__(self, costs: int = 1, kind: int = NONE, which: int = 0, at: int = 0) -> None:
        self.kind, self.which, self.at = jnp.int32(kind), jnp.int32(which), jnp.int32(at)
        self.costs = costs

    def spec(self) -> TaskSpec:
        return TaskSpec("walk", 2, Box(2), tuple(f"over_{i}" for i in range(self.costs)), HORIZON)

    def observe(self, place: jax.Array, clock: jax.Array) -> jax.Array:
        return jnp.stack([place, clock / HORIZON], axis=-1)

    def reset(self, key: jax.Array, num_envs: int) -> tuple[WalkState, Reset]:
        place, clock = jnp.zeros(num_envs), jnp.arange(num_envs) % HORIZON
        return WalkState(place, clock, jnp.int32(0), key), Reset(self.observe(place, clock), clock)

    def step(self, state: WalkState, actions: jax.Array) -> tuple[WalkState, TimeStep]:
        key, noise = jax.random.split(state.key)
        place = state.place + jnp.clip(actions, -1, 1).mean(axis=-1)
        place = place + 0.1 * jax.random.normal(noise, place.shape)
        clock = state.clock + 1
        terminated = jnp.abs(place) > 3
        truncated = (clock >= HORIZON) & ~terminated
        over = terminated | truncated
        broken = (jnp.arange(place.shape[0]) == self.which) & (state.total >= self.at)

        def fault(value: jax.Array, kind: int, wrong: float = jnp.nan) -> jax.Array:
            return jnp.where(broken & (self.kind == kind), wrong, value)

        reward = fault(fault(-((place - 1) ** 2), REWARD), HUGE, 3e38)
        thresholds = jnp.arange(self.costs) / 10
        costs = (fault(place, COST, jnp.inf)[:, None] > thresholds).astype(jnp.float32)
        costs = jnp.where(jnp.isinf(fault(place, COST, jnp.inf))[:, None], jnp.inf, costs)
        final = self.observe(fault(place, OBSERVATION), clock)
        new = WalkState(jnp.where(over, 0, place), jnp.where(over, 0, clock), state.total + 1, key)
        return new, TimeStep(
            observation=jnp.where(over[:, None], self.observe(new.place, new.clock), final),
            final_observation=final,
            reward=reward,
            costs=costs,
            terminated=terminated,
            truncated=truncated,
            failed=jnp.zeros_like(over),
        )


class HostWalk:
    """`Walk` as a simulator on the host that steps its arrays in place."""

    def __init__(self, num_envs: int = ENVS, costs: int = 1, kind: int = NONE, which: int = 0, at: int = 0):
        self.num_envs, self.costs = num_envs, costs
        self.kind, self.which, self.at = kind, which, at

    def spec(self) -> TaskSpec:
        return TaskSpec("walk", 2, Box(2), tuple(f"over_{i}" for i in range(self.costs)), HORIZON)

    def observe(self) -> np.ndarray:
        return np.stack([self.place, self.clock / HORIZON], axis=-1).astype(np.float32)

    def reset(self, seed: int) -> Reset:
        self.rng = np.random.default_rng(seed)
        self.place, self.clock = np.zeros(self.num_envs), np.arange(self.num_envs) % HORIZON
        self.total = 0
        return Reset(self.observe(), self.clock.copy())

    def step(self, actions: np.ndarray) -> TimeStep:
        self.place += np.clip(actions, -1, 1).mean(axis=-1) + 0.1 * self.rng.normal(size=self.num_envs)
        self.clock += 1
        reward = -((self.place - 1) ** 2)
        costs = (self.place[:, None] > np.arange(self.costs) / 10).astype(np.float32)
        final = self.observe()
        terminated = np.abs(self.place) > 3
        truncated = (self.clock >= HORIZON) & ~terminated
        over = terminated | truncated
        self.place[over], self.clock[over] = 0, 0
        observation = np.where(over[:, None], self.observe(), final)
        if self.total >= self.at:
            broken = self.which
            if self.kind == OBSERVATION:
                final[broken, 0] = observation[broken, 0] = np.nan
            if self.kind in (REWARD, HUGE):
                reward[broken] = np.nan if self.kind == REWARD else 3e38
            if self.kind == COST:
                costs[broken] = np.inf
        self.total += 1
        return TimeStep(observation, final, reward, costs, terminated, truncated, np.zeros_like(over))

    def save(self) -> dict[str, np.ndarray]:
        return {"place": self.place.copy(), "clock": self.clock.copy()}

    def load(self, saved: dict[str, np.ndarray]) -> None:
        self.place, self.clock = saved["place"].copy(), saved["clock"].copy()

    def close(self) -> None:
        pass
