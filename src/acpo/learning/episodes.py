"""Counting whole episodes: the measured, undiscounted returns Ĵ that every limit is compared with.

T steps, B environments, 1 + K signals (reward first), W episodes in the window.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class EpisodeState(NamedTuple):
    """Unfinished episodes of B environments, and what is remembered of finished ones."""

    sums: jax.Array
    """[B, 1 + K] signals summed since the episode began"""
    steps: jax.Array
    """[B] steps counted since then"""
    elapsed: jax.Array
    """[B] steps that were on the clock when counting began: a random phase, then zero"""
    window_sums: jax.Array
    """[W, 1 + K] of the last finished episodes"""
    window_steps: jax.Array
    """[W]"""
    window_weights: jax.Array
    """[W] 1 for a whole episode, less for one counted in part, 0 for an empty slot"""
    returns: jax.Array
    """[1 + K] the last estimate"""
    length: jax.Array
    """[] the last estimate of the episode length"""
    known: jax.Array
    """[] bool: some episode has finished"""


class Finished(NamedTuple):
    """Episodes that ended at each step; rows with weight 0 are none."""

    sums: jax.Array
    steps: jax.Array
    weights: jax.Array


def init(elapsed: jax.Array, signals: int, window: int) -> EpisodeState:
    envs = elapsed.shape[0]
    return EpisodeState(
        sums=jnp.zeros((envs, signals)),
        steps=jnp.zeros(envs),
        elapsed=elapsed.astype(jnp.float32),
        window_sums=jnp.zeros((window, signals)),
        window_steps=jnp.zeros(window),
        window_weights=jnp.zeros(window),
        returns=jnp.zeros(signals),
        length=jnp.zeros(()),
        known=jnp.zeros((), bool),
    )


def count(
    state: EpisodeState,
    signals: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    episode_steps: int,
    per_step: bool = False,
) -> tuple[EpisodeState, jax.Array]:
    """Add steps (signals [T, B, 1 + K]; terminated, truncated [T, B]) and renew the estimates.

    An episode whose clock started at a random phase and ran out was seen for steps/episode_steps
    of its length: it counts with that weight, and returns are Σ sums / Σ weights. Until any
    episode has finished the batch's mean per step stands for the whole length.

    `per_step` takes the batch's mean per step times the mean length of episodes instead (what an
    episode is worth, by renewal, where clocks are out of step): all of it is the present policy's
    doing, while most steps of an episode longer than a batch are its predecessors'.

    Also returns how many episodes ended, [].
    """

    def step(
        carry: tuple[jax.Array, jax.Array, jax.Array], row: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array, jax.Array], Finished]:
        sums, steps, elapsed = carry
        values, ended, cut = row
        sums, steps = sums + values, steps + 1
        partial = cut & (elapsed > 0)
        weights = jnp.where(ended, jnp.where(partial, steps / episode_steps, 1.0), 0.0)
        finished = Finished(jnp.where(ended[:, None], sums, 0.0), jnp.where(ended, steps, 0.0), weights)
        keep = 1.0 - ended
        return (sums * keep[:, None], steps * keep, elapsed * keep), finished

    carry, finished = jax.lax.scan(
        step, (state.sums, state.steps, state.elapsed), (signals, terminated | truncated, truncated)
    )
    flat = Finished(*(leaf.reshape(-1, *leaf.shape[2:]) for leaf in finished))
    window = state.window_weights.shape[0]
    if window:
        flat = Finished(
            jnp.concatenate([state.window_sums, flat.sums]),
            jnp.concatenate([state.window_steps, flat.steps]),
            jnp.concatenate([state.window_weights, flat.weights]),
        )
        order = jnp.where(flat.weights > 0, jnp.arange(flat.weights.shape[0]), -1)
        latest = jnp.sort(jnp.argsort(order)[-window:])
        flat = Finished(*(leaf[latest] for leaf in flat))
    total = flat.weights.sum()
    any_finished = total > 0
    divisor = jnp.where(any_finished, total, 1.0)
    mean = signals.mean(axis=(0, 1))
    fallback = jnp.where(state.known, state.returns, mean * episode_steps)
    fallback_length = jnp.where(state.known, state.length, float(episode_steps))
    length = jnp.where(any_finished, flat.steps.sum() / divisor, fallback_length)
    whole = jnp.where(any_finished, flat.sums.sum(axis=0) / divisor, fallback)
    new = EpisodeState(
        *carry,
        window_sums=flat.sums if window else state.window_sums,
        window_steps=flat.steps if window else state.window_steps,
        window_weights=flat.weights if window else state.window_weights,
        returns=mean * length if per_step else whole,
        length=length,
        known=state.known | any_finished,
    )
    return new, jnp.sum(finished.weights > 0)
