"""State as named arrays and back."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acpo import UserError
from acpo.runs import arrays


class Tree(NamedTuple):
    weights: list
    count: np.ndarray
    nothing: None = None


TREE = Tree([jnp.arange(3.0), jnp.ones((2, 0))], np.array(4, np.int32))


def test_leaves_are_named_by_their_path():
    flat = arrays.flatten(TREE, "state")
    assert list(flat) == ["state.weights[0]", "state.weights[1]", "state.count"]
    assert all(isinstance(value, np.ndarray) for value in flat.values())


def test_there_and_back():
    back = arrays.unflatten(TREE, arrays.flatten(TREE, "x"), "x")
    assert jax.tree.structure(back) == jax.tree.structure(TREE)
    for one, other in zip(jax.tree.leaves(back), jax.tree.leaves(TREE), strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)


def test_typed_keys_come_back_as_keys():
    key = jax.random.key(3)
    back = arrays.unflatten(key, arrays.flatten(key, "key"), "key")
    assert jnp.array_equal(jax.random.normal(back), jax.random.normal(key))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x.count": np.array(4, np.int64)}, r"x\.count has shape \(\) and type int64 where .* int32"),
        ({"x.weights[0]": np.zeros(4, np.float32)}, r"x\.weights\[0\] has shape \(4,\) and type float32"),
        ({"x.weights[0]": None}, r"x\.weights\[0\] is missing"),
    ],
)
def test_what_does_not_fit_is_named(change, sentence):
    with pytest.raises(UserError, match=sentence):
        arrays.unflatten(TREE, arrays.flatten(TREE, "x") | change, "x")


def test_under_a_prefix():
    assert arrays.under({"a.b": np.ones(1), "c": np.ones(1)}, "a.").keys() == {"b"}
