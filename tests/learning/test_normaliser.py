"""Running moments of observations."""

import jax.numpy as jnp
import numpy as np

from acpo.learning import normaliser


def test_two_batches_by_hand():
    # 1, 3 and then 8: mean 4, squared deviations 9 + 1 + 16 = 26, variance 26/3.
    state = normaliser.update(normaliser.init(1), jnp.array([[1.0], [3.0]]))
    np.testing.assert_allclose([state.samples, state.mean[0], state.square[0]], [2.0, 2.0, 2.0])
    state = normaliser.update(state, jnp.array([[8.0]]))
    np.testing.assert_allclose([state.samples, state.mean[0], state.square[0]], [3.0, 4.0, 26.0], rtol=1e-6)
    np.testing.assert_allclose(normaliser.std(state), [(26 / 3) ** 0.5], rtol=1e-6)
    np.testing.assert_allclose(normaliser.apply(state, jnp.array([7.0])), [3 / (26 / 3) ** 0.5], rtol=1e-6)


def test_merged_batches_have_the_moments_of_all_their_rows():
    rng = np.random.default_rng(0)
    # An offset of 100 with a deviation of 1 would lose all digits in a sum of squares.
    parts = [rng.normal(100, 1, size=(size, 3)) * [1, 10, 0.1] for size in (1, 7, 400, 2000)]
    state = normaliser.init(3)
    for part in parts:
        state = normaliser.update(state, jnp.asarray(part, jnp.float32))
    rows = np.concatenate(parts)
    assert float(state.samples) == len(rows)
    np.testing.assert_allclose(state.mean, rows.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(normaliser.std(state), rows.std(axis=0), rtol=1e-3)


def test_the_count_does_not_stall_when_it_is_large():
    # Ten thousand batches of 20000 are 2·10⁸ observations, more than float32 counts one by one.
    state = normaliser.init(1)._replace(samples=jnp.float32(2e8))
    assert float(normaliser.update(state, jnp.zeros((20000, 1))).samples) > 2e8 + 19000


def test_clip_and_floor():
    state = normaliser.update(normaliser.init(2), jnp.array([[0.0, 7.0], [2.0, 7.0]]))
    # The second number never varied: its deviation is floored at 0.01, its distance clipped at ±5.
    np.testing.assert_allclose(normaliser.std(state), [1.0, 0.01])
    np.testing.assert_allclose(normaliser.apply(state, jnp.array([3.0, 7.02])), [2.0, 2.0], rtol=1e-4)
    np.testing.assert_allclose(normaliser.apply(state, jnp.array([-50.0, 8.0])), [-5.0, 5.0])


def test_before_anything_was_seen_observations_pass_as_they_are():
    np.testing.assert_allclose(normaliser.apply(normaliser.init(1), jnp.array([2.0])), [2.0])
