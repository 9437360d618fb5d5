"""A pytree as named arrays and back: the only form in which state is stored."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from acpo.errors import UserError

Arrays = dict[str, np.ndarray]


def flatten(tree: Any, prefix: str) -> Arrays:
    """Every leaf under `prefix` and its path in the tree."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {prefix + jax.tree_util.keystr(path): np.asarray(_plain(leaf)) for path, leaf in leaves}


def unflatten(template: Any, arrays: Arrays, prefix: str) -> Any:
    """A tree like `template` with the arrays' values; names, shapes and types must agree."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(template)
    return jax.tree_util.tree_unflatten(
        structure, [_leaf(leaf, arrays, prefix + jax.tree_util.keystr(path)) for path, leaf in leaves]
    )


def under(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names start with `prefix`, without it."""
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def _leaf(template: Any, arrays: Arrays, name: str) -> Any:
    expected = np.asarray(_plain(template))
    value = arrays.get(name)
    if value is None or value.shape != expected.shape or value.dtype != expected.dtype:
        found = "is missing" if value is None else f"has shape {value.shape} and type {value.dtype}"
        raise UserError(
            f"The checkpoint does not fit this configuration: {name} {found} where"
            f" shape {expected.shape} and type {expected.dtype} are needed."
        )
    if isinstance(template, np.ndarray):
        return value
    if _is_key(template):
        return jax.random.wrap_key_data(jnp.asarray(value))
    return jnp.asarray(value)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> Any:
    """Typed random keys as plain numbers."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf
