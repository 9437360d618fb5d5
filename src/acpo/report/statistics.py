"""Means with intervals, for few numbers: seeds are dear, so there are three or five of them."""

from __future__ import annotations

import numpy as np
from scipy import stats

RESAMPLES = 2000


def mean_interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Mean and the bounds of its Student interval; for a single value the bounds are that value."""
    values = np.asarray(values, np.float64)
    mean = float(values.mean())
    if len(values) < 2:
        return mean, mean, mean
    half = float(stats.t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def bootstrap_interval(values: np.ndarray, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Percentiles of the mean over resamples with replacement."""
    values = np.asarray(values, np.float64)
    if len(values) < 2:
        return float(values.mean()), float(values.mean())
    picks = np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))
    means = values[picks].mean(axis=1)
    low, high = np.quantile(means, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def interquartile_mean(values: np.ndarray) -> float:
    """Mean of the middle half. With n values, n/4 are trimmed at each end; a fraction of a value
    is trimmed as a fraction of its weight."""
    values = np.sort(np.asarray(values, np.float64))
    edges = np.linspace(0, 1, len(values) + 1)
    weights = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0, None)
    return float(weights @ values / weights.sum())
