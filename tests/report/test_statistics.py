"""Few numbers, by hand."""

import numpy as np
import pytest

from acpo.report.statistics import bootstrap_interval, interquartile_mean, mean_interval


def test_student_interval_by_hand():
    """1, 2, 6: mean 3, variance (4 + 1 + 9)/2 = 7, so 4.3027·√(7/3) = 6.5725 each way."""
    mean, low, high = mean_interval(np.array([1.0, 2.0, 6.0]))
    assert (mean, low, high) == pytest.approx((3.0, 3 - 6.5725, 3 + 6.5725), abs=1e-3)
    assert mean_interval(np.array([4.0])) == (4.0, 4.0, 4.0)


def test_a_wider_level_is_wider():
    narrow, wide = (mean_interval(np.arange(5.0), level)[2] for level in (0.5, 0.99))
    assert wide > narrow > 2


def test_bootstrap_of_two_values_is_their_range():
    """A resample of {0, 1} has mean 0, ½ or 1 with odds ¼, ½, ¼, so the 2.5 % quantiles are the ends; at
    a level of 0.4 both are ½."""
    values = np.array([0.0, 1.0])
    assert bootstrap_interval(values) == (0.0, 1.0)
    assert bootstrap_interval(values, level=0.4) == (0.5, 0.5)
    assert bootstrap_interval(np.array([3.0])) == (3.0, 3.0)


def test_bootstrap_of_three_values_by_counting():
    """Of the 27 resamples of {0, 0, 9}, 8 have mean 0 and 1 has mean 9; so at a level of 0.9 the lower
    end is 0 and the upper, whose quantile 0.95 lies within the 6/27 before the last 1/27, is 6."""
    assert bootstrap_interval(np.array([0.0, 0.0, 9.0]), level=0.9) == (0.0, 6.0)


def test_bootstrap_repeats_and_narrows():
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=5), rng.normal(size=500)
    assert bootstrap_interval(few) == bootstrap_interval(few)
    low, high = bootstrap_interval(many)
    # The standard error is about 1/√500.
    assert high - low == pytest.approx(2 * 1.96 / np.sqrt(500), rel=0.15)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], 5.0),
        ([1.0, 3.0], 2.0),
        # A quarter of three values is ¾ of one, so the outer ones keep a weight of ¼: (¼·0 + 1 + ¼·8)/1.5.
        ([8.0, 0.0, 1.0], 2.0),
        ([100.0, 1.0, 2.0, -50.0], 1.5),
        # 1¼ values go at each end: (¾·2 + 3 + ¾·10)/2.5.
        ([-9.0, 2.0, 3.0, 10.0, 99.0], 4.8),
        ([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 50.0, 50.0], 2.5),
    ],
)
def test_interquartile_mean_by_hand(values, expected):
    assert interquartile_mean(np.array(values)) == pytest.approx(expected)
