"""How good a trained policy is, on episodes it has never seen.

Every environment plays a fixed number of episodes. Taking the first ones to finish would prefer
short episodes, and an episode that started in the middle of its clock is not counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from acpo.errors import NonFiniteError
from acpo.report.statistics import mean_interval
from acpo.runs import simulators
from acpo.runs.policy import TrainedPolicy, act
from acpo.runs.simulators import Source
from acpo.tasks.base import DeviceTask, HostTask

FRESH = 1_000_003
"""Seeds of evaluations start here, far from those of training."""
WIDEST = 50
"""Episodes played side by side at most."""


class Episodes(NamedTuple):
    """E whole episodes, K costs."""

    reward: np.ndarray
    """[E] undiscounted return"""
    costs: np.ndarray
    """[E, K]"""
    length: np.ndarray
    """[E] steps"""


class Estimate(NamedTuple):
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Evaluation:
    """S policies (one a seed of the run), E episodes each, K costs."""

    reward: Estimate
    costs: dict[str, Estimate]
    over_budget: dict[str, float]
    """Share of episodes that cost more than the budget, by cost; empty without budgets."""
    budgets: tuple[float, ...]
    episodes: list[Episodes] = field(repr=False)
    """One entry per seed of the run."""
    facts: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def feasible(self) -> bool:
        """Whether every mean cost is within its budget."""
        means = [estimate.mean for estimate in self.costs.values()]
        return all(mean <= budget for mean, budget in zip(means, self.budgets, strict=False))

    def to_json(self) -> str:
        values = {
            **self.facts,
            "reward": self.reward._asdict(),
            "costs": {name: estimate._asdict() for name, estimate in self.costs.items()},
            "budgets": dict(zip(self.costs, self.budgets, strict=False)),
            "over_budget": self.over_budget,
            "feasible": self.feasible,
            "episodes": [{k: v.tolist() for k, v in e._asdict().items()} for e in self.episodes],
        }
        return json.dumps(values, indent=1)


def evaluate(
    source: Source,
    policies: list[TrainedPolicy],
    budgets: tuple[float, ...],
    episodes: int = 100,
    deterministic: bool = True,
    seed: int = 0,
) -> Evaluation:
    """`episodes` for every policy, all on the same fresh seeds."""
    task = simulators.for_evaluation(source, min(episodes, WIDEST))
    try:
        played = [play(task, policy, episodes, deterministic, FRESH + seed) for policy in policies]
        scores = [_reported(task, one) for one in played]
    finally:
        if isinstance(task, HostTask) and source.fixed_envs is None:
            task.close()
    costs = [one.costs for one in played]
    pooled = np.concatenate(costs)
    return Evaluation(
        reward=estimate([one for one in scores]),
        costs={name: estimate([c[:, k] for c in costs]) for k, name in enumerate(source.spec.costs)},
        over_budget={
            name: float(np.mean(pooled[:, k] > budget))
            for k, (name, budget) in enumerate(zip(source.spec.costs, budgets, strict=False))
        },
        budgets=budgets,
        episodes=[Episodes(score, e.costs, e.length) for score, e in zip(scores, played, strict=True)],
        facts={
            "task": source.name,
            "iterations": [policy.iteration for policy in policies],
            "episodes_per_seed": episodes,
            "deterministic": deterministic,
            "seed": FRESH + seed,
            "interval": "95 % interval over " + ("seeds" if len(policies) > 1 else "episodes"),
        },
    )


def estimate(groups: list[np.ndarray]) -> Estimate:
    """Over seeds where there are several (episodes of one policy are no independent repeats of
    training), else over episodes."""
    values = groups[0] if len(groups) == 1 else np.array([group.mean() for group in groups])
    return Estimate(*mean_interval(values))


def play(
    task: DeviceTask | HostTask, policy: TrainedPolicy, episodes: int, deterministic: bool, seed: int
) -> Episodes:
    """Whole episodes of one policy; the order is by environment, then by time."""
    step, first = _stepper(task, policy, deterministic, seed, min(episodes, WIDEST))
    envs = len(first)
    quota = np.full(envs, episodes // envs)
    quota[: episodes % envs] += 1
    skip = first > 0
    signals = np.zeros((envs, 1 + len(policy.spec.costs)))
    lengths = np.zeros(envs, int)
    done: list[list[tuple[np.ndarray, int]]] = [[] for _ in range(envs)]
    while any(len(found) < wanted for found, wanted in zip(done, quota, strict=True)):
        reward, costs, ended = step()
        new = np.concatenate([reward[:, None], costs], axis=1)
        if not np.isfinite(new).all():
            env, signal = np.argwhere(~np.isfinite(new))[0]
            what = "reward" if signal == 0 else f"cost {policy.spec.costs[signal - 1]}"
            raise NonFiniteError(
                f"The {what} became NaN or infinite in environment {env} after {lengths[env] + 1} steps"
                " of an episode, so there is nothing to average."
            )
        signals += new
        lengths += 1
        for i in np.flatnonzero(ended):
            if not skip[i] and len(done[i]) < quota[i]:
                done[i].append((signals[i].copy(), int(lengths[i])))
            skip[i], signals[i], lengths[i] = False, 0.0, 0
    flat = [episode for found in done for episode in found]
    sums = np.stack([sums for sums, _ in flat])
    return Episodes(sums[:, 0], sums[:, 1:], np.array([length for _, length in flat]))


def _stepper(
    task: DeviceTask | HostTask, policy: TrainedPolicy, deterministic: bool, seed: int, num_envs: int
) -> tuple[Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]], np.ndarray]:
    """A function that steps all environments → (reward [B], costs [B, K], ended [B]), and the
    steps [B] already on their clocks."""
    key = jax.random.PRNGKey(seed)
    count = 0

    def next_key() -> jax.Array | None:
        nonlocal count
        count += 1
        return None if deterministic else jax.random.fold_in(key, count)

    if isinstance(task, DeviceTask):
        state, reset = task.reset(key, num_envs)
        observation = reset.observation
        advance = jax.jit(lambda task, state, actions: task.step(state, actions))

        def step_device() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            nonlocal state, observation
            actions = act(policy.policy, policy.normaliser, jnp.asarray(observation), next_key())
            state, result = advance(task, state, actions)
            observation = result.observation
            return tuple(jax.device_get((result.reward, result.costs, result.terminated | result.truncated)))

        return step_device, np.asarray(reset.elapsed)

    start = task.reset(seed)
    seen = np.asarray(start.observation, np.float32)

    def step_host() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        nonlocal seen
        actions = np.asarray(act(policy.policy, policy.normaliser, jnp.asarray(seen), next_key()))
        result = task.step(actions)
        seen = np.asarray(result.observation, np.float32)
        ended = np.asarray(result.terminated) | np.asarray(result.truncated)
        return np.asarray(result.reward), np.asarray(result.costs), ended

    return step_host, np.asarray(start.elapsed)


def _reported(task: Any, episodes: Episodes) -> np.ndarray:
    """[E] returns in the units that the task's results are published in."""
    convert = getattr(task, "reported_return", None)
    return episodes.reward if convert is None else np.asarray(convert(episodes.reward, episodes.length))
