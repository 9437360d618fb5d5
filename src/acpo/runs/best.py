"""The best policy so far: the highest smoothed reward among those that kept their budgets.

Returns are noisy and a policy changes every iteration, so one lucky measurement must not win:
reward and costs are means over the last `WINDOW` iterations. A mean over fewer, as at the start, counts
until there is a feasible one over all of them. S seeds, K costs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from acpo.training import TrainState

WINDOW = 10


class Best(NamedTuple):
    policy: Any
    """[S, …] of the best iteration of each seed; the present one where there is none yet"""
    normaliser: Any
    """[S, …]"""
    iteration: np.ndarray
    """[S] int: the iteration whose rollout this policy acted in, 0 for none"""
    reward: np.ndarray
    """[S] smoothed; −inf for none"""
    recent: np.ndarray
    """[WINDOW, S, 1 + K] the last measured returns, NaN where none"""


def start(state: TrainState, costs: int) -> Best:
    seeds = state.iteration.shape[0]
    return Best(
        policy=state.policy,
        normaliser=state.normaliser,
        iteration=np.zeros(seeds, np.int32),
        reward=np.full(seeds, -np.inf, np.float32),
        recent=np.full((WINDOW, seeds, 1 + costs), np.nan, np.float32),
    )


def update(best: Best, acted: TrainState, metrics: dict[str, Any], desired: np.ndarray) -> Best:
    """`acted` is the state whose policy the returns in `metrics` were measured on."""
    returns = np.concatenate([np.asarray(metrics["reward"])[:, None], np.asarray(metrics["costs"])], axis=1)
    recent = np.concatenate([best.recent[1:], returns[None].astype(np.float32)])
    smooth = np.nanmean(recent, axis=0)
    feasible = np.all(smooth[:, 1:] <= desired, axis=1)
    iteration = np.asarray(metrics["iteration"])
    lucky = (iteration >= WINDOW) & (best.iteration < WINDOW)
    better = feasible & (lucky | (smooth[:, 0] > best.reward))
    if not better.any():
        return best._replace(recent=recent)

    def pick(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    policy, normaliser = (
        (acted.policy, acted.normaliser)
        if better.all()
        else jax.tree.map(pick, (acted.policy, acted.normaliser), (best.policy, best.normaliser))
    )
    return Best(
        policy,
        normaliser,
        np.where(better, iteration, best.iteration).astype(np.int32),
        np.where(better, smooth[:, 0], best.reward).astype(np.float32),
        recent,
    )
