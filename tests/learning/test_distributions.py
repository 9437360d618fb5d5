"""Action distributions against closed forms and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from acpo.learning.distributions import Categorical, Gaussian

ONE = Gaussian(jnp.array([1.0, -2.0]), jnp.log(jnp.array([0.5, 2.0])))
TWO = Gaussian(jnp.array([0.0, 1.0]), jnp.log(jnp.array([1.0, 4.0])))
DIE = Categorical(jnp.log(jnp.array([0.5, 0.3, 0.2])) + 7.0)
FAIR = Categorical(jnp.zeros(3))


def test_gaussian_log_prob_is_the_sum_over_entries():
    action = jnp.array([1.5, 2.0])
    expected = stats.norm.logpdf(1.5, 1, 0.5) + stats.norm.logpdf(2, -2, 2)
    np.testing.assert_allclose(ONE.log_prob(action), expected, rtol=1e-6)


def test_gaussian_entropy():
    expected = stats.norm(0, 0.5).entropy() + stats.norm(0, 2).entropy()
    np.testing.assert_allclose(ONE.entropy(), expected, rtol=1e-6)


def test_gaussian_kl_by_hand_and_its_direction():
    # log(σ₂/σ₁) + (σ₁² + (μ₁ − μ₂)²)/(2σ₂²) − ½, entry by entry:
    #   log 2 + (0.25 + 1)/2 − ½ = 0.818147;  log 2 + (4 + 9)/32 − ½ = 0.599397
    np.testing.assert_allclose(ONE.kl(TWO), 0.818147 + 0.599397, rtol=1e-5)
    #   the other way: −log 2 + (1 + 1)/0.5 − ½ = 2.806853;  −log 2 + (16 + 9)/8 − ½ = 1.931853
    np.testing.assert_allclose(TWO.kl(ONE), 2.806853 + 1.931853, rtol=1e-5)
    np.testing.assert_allclose(ONE.kl(ONE), 0.0, atol=1e-7)


def test_gaussian_samples_have_its_moments_and_its_mode_is_the_mean():
    count = 40_000
    wide = Gaussian(*(jnp.broadcast_to(leaf, (count, 2)) for leaf in (ONE.mean, ONE.log_std)))
    samples = np.asarray(wide.sample(jax.random.PRNGKey(0)))
    error = np.array([0.5, 2.0]) / count**0.5
    assert np.all(np.abs(samples.mean(axis=0) - [1, -2]) < 4 * error)
    assert np.all(np.abs(samples.std(axis=0) - [0.5, 2]) < 4 * error)
    assert abs(np.corrcoef(samples.T)[0, 1]) < 4 / count**0.5
    np.testing.assert_array_equal(ONE.mode(), ONE.mean)


def test_categorical_ignores_a_constant_in_its_logits():
    np.testing.assert_allclose(DIE.log_prob(jnp.array(1)), np.log(0.3), rtol=1e-5)
    np.testing.assert_allclose(DIE.entropy(), stats.entropy([0.5, 0.3, 0.2]), rtol=1e-5)
    assert int(DIE.mode()) == 0


def test_categorical_kl_by_hand_and_its_direction():
    third = np.full(3, 1 / 3)
    np.testing.assert_allclose(DIE.kl(FAIR), stats.entropy([0.5, 0.3, 0.2], third), rtol=1e-4)
    np.testing.assert_allclose(FAIR.kl(DIE), stats.entropy(third, [0.5, 0.3, 0.2]), rtol=1e-4)


def test_categorical_samples_have_its_frequencies():
    count = 40_000
    many = Categorical(jnp.broadcast_to(DIE.logits, (count, 3)))
    samples = np.asarray(many.sample(jax.random.PRNGKey(1)))
    frequencies = np.bincount(samples, minlength=3) / count
    p = np.array([0.5, 0.3, 0.2])
    assert np.all(np.abs(frequencies - p) < 4 * np.sqrt(p * (1 - p) / count))
