"""The barrier, its slope, its softness, and what becomes of them in an update."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bandit import CONFIG, batch, networks, solve

from acpo.config import replace
from acpo.problem import max_reward, min_cost, projection
from acpo.solvers import interior_point, ppo
from acpo.solvers.interior_point import barrier_value, multiplier

KAPPA = jnp.float32(0.5)
MOST = 25.0
# The knee is where κ/s reaches the largest multiplier: s₀ = 0.5/25 = 0.02.
value = jax.jit(lambda slack: barrier_value(slack, KAPPA, MOST))
slope = jax.jit(jax.vmap(jax.grad(lambda slack: barrier_value(slack, KAPPA, MOST))))


@pytest.mark.parametrize(
    ("slack", "expected"),
    [
        (2.0, 0.25),  # 0.5/2
        (0.1, 5.0),
        (0.02, 25.0),  # the knee
        (0.01, 25.0),  # 50 is more than allowed
        (0.0, 25.0),
        (-3.0, 25.0),
        (1e30, 5e-31),
        (np.inf, 0.0),
    ],
)
def test_the_multiplier_is_kappa_over_slack_within_its_bound(slack, expected):
    np.testing.assert_allclose(multiplier(jnp.float32(slack), KAPPA, MOST), expected, rtol=1e-5)


def test_the_barrier_at_known_slack():
    # ½·log 2 = 0.346574 and ½·log 0.1 = −1.151293.
    np.testing.assert_allclose(value(jnp.array([2.0, 1.0, 0.1])), [0.346574, 0, -1.151293], atol=1e-5)
    # Below the knee, a straight line of slope 25: ½·log 0.02 = −1.956012 at the knee,
    # −1.956012 − 25·0.02 = −2.456012 at slack 0, −27.456012 at −1.
    np.testing.assert_allclose(
        value(jnp.array([0.02, 0.0, -1.0])), [-1.956012, -2.456012, -27.456012], rtol=1e-5
    )


def test_the_barrier_is_continuous_at_its_knee():
    below, above = value(jnp.array([0.02 * (1 - 1e-5), 0.02 * (1 + 1e-5)]))
    assert abs(float(above - below)) < 5e-5


def test_the_slope_is_the_multiplier():
    slacks = np.array([-1.0, 0.0, 0.01, 0.03, 0.1, 2.0, 50.0])
    np.testing.assert_allclose(
        slope(jnp.asarray(slacks, jnp.float32)),
        multiplier(jnp.asarray(slacks, jnp.float32), KAPPA, MOST),
        rtol=1e-5,
    )
    # By difference quotient, in double precision and written out.
    inside = slacks > 0.02
    written = lambda s: np.where(  # noqa: E731
        inside, 0.5 * np.log(np.maximum(s, 1e-9)), 0.5 * np.log(0.02) + 25 * (s - 0.02)
    )
    quotient = (written(slacks + 1e-6) - written(slacks - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope(jnp.asarray(slacks, jnp.float32)), quotient, rtol=1e-4)


def test_the_gradient_stays_finite_where_the_other_branch_is_not():
    assert np.all(np.isfinite(slope(jnp.array([-1e30, 0.0, 1e30]))))


# Softness.


def softness(problem, progress=0.0, **fields):
    config = replace(CONFIG, {f"interior_point.{name}": value for name, value in fields.items()})
    return np.asarray(interior_point.softness(config, problem, jnp.float32(progress)))


def test_kappa_in_units_of_the_budget():
    # Budgets 25 and 4 at κ = 0.1: 2.5 and 0.4.
    problem = max_reward(jnp.array([25.0, 4.0]))
    np.testing.assert_allclose(softness(problem, kappa=0.1)[1:], [2.5, 0.4], rtol=1e-6)
    # Half-way to a hundredth of it: a tenth.
    np.testing.assert_allclose(
        softness(problem, 0.5, kappa=0.1, final_kappa=0.01)[1:], [0.25, 0.04], rtol=1e-5
    )


def test_kappa_of_a_reward_limit_is_in_deviations_of_a_measurement():
    problem = min_cost(jnp.array([True]), jnp.array(50.0), jnp.array([jnp.inf]), jnp.array(3.0))
    np.testing.assert_allclose(softness(problem, reward_kappa=0.5)[0], 1.5, rtol=1e-6)


def test_absolute_kappa_is_the_same_for_every_limit():
    problem = min_cost(jnp.array([True]), jnp.array(50.0), jnp.array([7.0]), jnp.array(3.0))
    np.testing.assert_allclose(softness(problem, kappa=0.01, kappa_unit="absolute"), [0.01, 0.01], rtol=1e-6)


# Readings. The slack of cost 1 is 30 − 26 = 4 as measured. κ is 0.1·30 = 3 and the bound 25, so
# λ = 3/4 = 0.75 at the start of the update. The reward's advantages pull the cost up.
DATA = batch([[2.0, -2.0, 1.0, -1.0], [2.0, -2.0, -1.0, 1.0]], returns=[10.0, 26.0])
PROBLEM = max_reward(jnp.array([30.0]))
FIELDS = {"interior_point.kappa": 0.1, "interior_point.final_kappa": 1.0, "interior_point.penalty_max": 25.0}


def multipliers_after(reading: str) -> tuple[float, float]:
    """The reported multiplier and the predicted change of the cost."""
    config = replace(CONFIG, {**FIELDS, "interior_point.reading": reading})
    _, update = solve(interior_point.SOLVER, PROBLEM, DATA, config)
    assert float(update.metrics["multipliers"][0]) == 0.0
    return float(update.metrics["multipliers"][1]), float(update.metrics["surrogates"][1])


def test_the_measured_reading_stays_where_it_was_measured():
    penalty, change = multipliers_after("measured")
    np.testing.assert_allclose(penalty, 0.75, rtol=1e-5)
    assert change != 0


@pytest.mark.parametrize("reading", ["surrogate", "minibatch"])
def test_the_moving_readings_follow_the_policy(reading):
    penalty, change = multipliers_after(reading)
    assert abs(change) > 0.1
    np.testing.assert_allclose(penalty, min(3 / (4 - change), 25) if change < 4 else 25, rtol=1e-4)


def test_the_direction_is_the_sum_over_one_plus_the_multipliers():
    # Objective (1, 0, 0), multipliers (0, 3, 1): (1, −3, −1)/(1 + 4); an anchor of 1 becomes 1/5.
    weights = ppo.weights(
        jnp.array([1.0, 0, 0]), jnp.array(1.0), jnp.array([0, 3.0, 1.0]), jnp.array([1.0, -1, -1])
    )
    np.testing.assert_allclose(weights.signals, [0.2, -0.6, -0.2], rtol=1e-6)
    np.testing.assert_allclose(weights.anchor, 0.2, rtol=1e-6)


def test_an_objective_has_unit_deviation_in_every_stage():
    # The reward's advantages (2, −2, 1, −1) have a deviation of √2.5; as a solver gets them, 1.
    data = batch([[2.0, -2.0, 1.0, -1.0], [0.2, -0.2, -0.1, 0.1]], returns=[10.0, 26.0])
    least = min_cost(jnp.array([True]), jnp.array(9.0), jnp.array([jnp.inf]), jnp.array(0.5))
    np.testing.assert_allclose(interior_point.aim(CONFIG, PROBLEM, data), [2.5**-0.5, 0], rtol=1e-5)
    np.testing.assert_allclose(interior_point.aim(CONFIG, least, data), [0, -10 * 2.5**-0.5], rtol=1e-5)
    np.testing.assert_array_equal(interior_point.aim(CONFIG, projection(jnp.array([30.0])), data), [0, 0])
    signal = replace(CONFIG, {"interior_point.objective_unit": "signal"})
    np.testing.assert_array_equal(interior_point.aim(signal, least, data), [0, -1])


def nothing_known() -> interior_point.Trust:
    zeros = jnp.zeros(2)
    return interior_point.Trust(zeros, jnp.zeros((), bool), zeros, zeros, zeros)


def test_predictions_are_believed_as_far_as_they_came_true():
    after = lambda trust, *returns: trust.after(jnp.array(returns), gain=1.0, calibrate=True)  # noqa: E731
    trust = after(nothing_known(), 5.0, 50.0)
    assert trust.share().tolist() == [1.0, 1.0]
    # Predicted +2 and −40; measured +3 and −10: all of the former (never more), a quarter of the latter.
    trust = after(trust._replace(predicted=jnp.array([2.0, -40.0])), 8.0, 40.0)
    np.testing.assert_allclose(trust.share(), [1.0, 0.25], rtol=1e-6)
    # Then −40 again, and +4 came: (0.95·400 − 160)/(0.95·1600 + 1600) = 220/3120. A rise of the reward
    # by 1 after a prediction of −4: (0.95·6 − 4)/(0.95·4 + 16) = 1.7/19.8.
    trust = after(trust._replace(predicted=jnp.array([-4.0, -40.0])), 9.0, 44.0)
    np.testing.assert_allclose(trust.share(), [1.7 / 19.8, 220 / 3120], rtol=1e-5)
    # Never less than nothing.
    trust = after(trust._replace(predicted=jnp.array([-9.0, 9.0])), 19.0, 4.0)
    assert trust.share().tolist() == [0.0, 0.0]


def test_a_measurement_corrects_what_was_expected_by_the_gain():
    measured = lambda trust, *returns: trust.after(jnp.array(returns), gain=0.25, calibrate=True)  # noqa: E731
    # The first one is all there is.
    trust = measured(nothing_known(), 5.0, 50.0)
    assert trust.estimate.tolist() == [5.0, 50.0]
    # Predicted 0 and −40, measured 9 and 40: a quarter of −40 came true, so 40 was expected, and is
    # confirmed. The reward moves from 5 by a quarter of 4.
    trust = measured(trust._replace(predicted=jnp.array([0.0, -40.0])), 9.0, 40.0)
    np.testing.assert_allclose(trust.estimate, [6.0, 40.0], rtol=1e-6)
    # Nothing predicted, 48 measured: 42.
    trust = measured(trust, 6.0, 48.0)
    np.testing.assert_allclose(trust.estimate, [6.0, 42.0], rtol=1e-6)


def test_a_slack_moves_by_the_believed_part_of_a_prediction():
    fields = FIELDS | {"interior_point.reading": "surrogate", "interior_point.gain": 0.5}
    config = replace(CONFIG, fields)
    # The last update predicted a fall of the cost by 8, from 28; it fell by 2, to 26.
    policy, critics = networks(1)
    state = interior_point.init(config, policy, critics)
    trust = state.trust._replace(
        estimate=jnp.array([10.0, 28.0]), known=jnp.ones((), bool), predicted=jnp.array([0.0, -8.0])
    )
    state = state._replace(trust=trust)
    _, update = solve(interior_point.SOLVER, PROBLEM, DATA, config, state)
    change = float(update.metrics["surrogates"][1])
    assert abs(change) > 0.1
    np.testing.assert_allclose(update.metrics["trust"], [1.0, 0.25], rtol=1e-6)
    # Expected 28 − 8/4 = 26, as measured: slack 4.
    np.testing.assert_allclose(update.metrics["multipliers"][1], 3 / (4 - change / 4), rtol=1e-4)
    np.testing.assert_allclose(update.state.trust.predicted[1], change)
    # Without calibration 28 − 8 = 20 was expected, 26 measured: 23, slack 7.
    blind = replace(config, {"interior_point.calibrate": False})
    _, update = solve(interior_point.SOLVER, PROBLEM, DATA, blind, state)
    change = float(update.metrics["surrogates"][1])
    np.testing.assert_allclose(update.metrics["multipliers"][1], 3 / (7 - change), rtol=1e-4)
