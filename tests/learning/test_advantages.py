"""Generalised advantage estimation and its normalisation, worked by hand."""

import jax.numpy as jnp
import numpy as np

from acpo.learning.advantages import estimate
from acpo.learning.batch import Batch, normalise_advantages
from acpo.learning.distributions import Categorical

DISCOUNT = jnp.array([0.5, 1.0])
TRACE = jnp.array([0.5, 0.5])

# Three steps of three environments; the first signal is the reward, the second a cost. Environment 0
# is truncated at its second step, environment 1 terminates there, environment 2 goes on.
REWARD = [[1.0] * 3, [2.0] * 3, [3.0] * 3]
COST = [[0.0] * 3, [4.0] * 3, [1.0] * 3]
REWARD_VALUE = [[10.0] * 3, [20.0] * 3, [30.0] * 3]
COST_VALUE = [[2.0] * 3, [1.0] * 3, [3.0] * 3]
# Values of the observation each step led to, before any reset. Where an episode ends at the second
# step the state it reached is worth 40 (cost 6), unlike the 30 (cost 3) of the fresh one after it.
REWARD_NEXT = [[20.0] * 3, [40.0, 40.0, 30.0], [50.0] * 3]
COST_NEXT = [[1.0] * 3, [6.0, 6.0, 3.0], [2.0] * 3]
AT_SECOND = np.array([[False] * 3, [True] * 3, [False] * 3])
TERMINATED = jnp.asarray(AT_SECOND & np.array([False, True, False]))
TRUNCATED = jnp.asarray(AT_SECOND & np.array([True, False, False]))


def advantages(terminated=TERMINATED, truncated=TRUNCATED) -> np.ndarray:
    def signals(reward: list[list[float]], cost: list[list[float]]) -> jnp.ndarray:
        return jnp.stack([jnp.array(reward), jnp.array(cost)], axis=-1)

    return np.asarray(
        estimate(
            signals(REWARD, COST),
            signals(REWARD_VALUE, COST_VALUE),
            signals(REWARD_NEXT, COST_NEXT),
            terminated,
            truncated,
            DISCOUNT,
            TRACE,
        )
    )


def test_truncation_bootstraps_from_the_observation_it_reached_and_cuts_the_trace():
    # Reward, γ = 0.5, γλ = 0.25:
    #   δ₂ = 3 + 0.5·50 − 30 = −2                     A₂ = −2
    #   δ₁ = 2 + 0.5·40 − 20 =  2, cut                A₁ =  2
    #   δ₀ = 1 + 0.5·20 − 10 =  1                     A₀ =  1 + 0.25·2 = 1.5
    np.testing.assert_allclose(advantages()[:, 0, 0], [1.5, 2.0, -2.0], atol=1e-6)
    # Cost, γ = 1, γλ = 0.5:
    #   δ₂ = 1 + 2 − 3 = 0;  δ₁ = 4 + 6 − 1 = 9, cut;  δ₀ = 0 + 1 − 2 = −1, A₀ = −1 + 0.5·9 = 3.5
    np.testing.assert_allclose(advantages()[:, 0, 1], [3.5, 9.0, 0.0], atol=1e-6)


def test_termination_has_no_future():
    # δ₁ = 2 − 20 = −18, whatever follows is worth; A₀ = 1 + 0.25·(−18) = −3.5
    np.testing.assert_allclose(advantages()[:, 1, 0], [-3.5, -18.0, -2.0], atol=1e-6)
    # δ₁ = 4 − 1 = 3; A₀ = −1 + 0.5·3 = 0.5
    np.testing.assert_allclose(advantages()[:, 1, 1], [0.5, 3.0, 0.0], atol=1e-6)


def test_an_episode_that_goes_on_keeps_its_trace_and_the_batch_end_bootstraps():
    # δ₁ = 2 + 0.5·30 − 20 = −3, A₁ = −3 + 0.25·(−2) = −3.5, A₀ = 1 + 0.25·(−3.5) = 0.125
    np.testing.assert_allclose(advantages()[:, 2, 0], [0.125, -3.5, -2.0], atol=1e-6)
    # δ₁ = 4 + 3 − 1 = 6 = A₁ (A₂ = 0), A₀ = −1 + 0.5·6 = 2
    np.testing.assert_allclose(advantages()[:, 2, 1], [2.0, 6.0, 0.0], atol=1e-6)


def test_an_end_that_is_both_counts_as_a_true_end():
    both = jnp.asarray(AT_SECOND & np.array([False, True, False]))
    np.testing.assert_allclose(advantages(truncated=both)[:, 1], advantages()[:, 1], atol=0)


def test_reward_is_standardised_and_costs_only_centred():
    # Reward 1, 2, 3, 6: mean 3, squared deviations 4 + 1 + 0 + 9 = 14, deviation √3.5.
    # Cost 0, 10, 20, 50: mean 20, left in its own units.
    raw = jnp.array([[1.0, 0.0], [2.0, 10.0], [3.0, 20.0], [6.0, 50.0]])
    normal, divisors = normalise_advantages(raw)
    root = 3.5**0.5
    np.testing.assert_allclose(normal[:, 0], np.array([-2, -1, 0, 3]) / root, rtol=1e-6)
    np.testing.assert_allclose(normal[:, 1], [-20, -10, 0, 30], atol=1e-5)
    np.testing.assert_allclose(divisors, [root, 1.0], rtol=1e-6)


def test_equal_rewards_give_no_advantage_rather_than_nan():
    normal, _ = normalise_advantages(jnp.ones((5, 2)))
    np.testing.assert_array_equal(normal, np.zeros((5, 2)))


def test_surrogates_are_in_units_of_episode_returns():
    # Two samples, ratios 2 and 0.5. Reward advantages 1, −1: (2 − 0.5)/2 = 0.75, times a deviation
    # of 3 and episodes of 10 steps: 22.5. Cost advantages −2, 2: (−4 + 1)/2 = −1.5, times 10: −15.
    uniform = Categorical(jnp.zeros((2, 2)))
    batch = Batch(
        observations=jnp.zeros((2, 1)),
        actions=jnp.zeros(2, int),
        log_probs=jnp.zeros(2),
        old=uniform,
        anchor=None,
        advantages=jnp.array([[1.0, -2.0], [-1.0, 2.0]]),
        targets=jnp.zeros((2, 2)),
        returns=jnp.zeros(2),
        unit=jnp.array([3.0 * 10, 10.0]),
    )
    np.testing.assert_allclose(batch.surrogates(jnp.array([2.0, 0.5])), [22.5, -15.0], rtol=1e-6)
