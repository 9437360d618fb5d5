"""Policy and critics: small multilayer perceptrons."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from acpo.config import NetworkConfig
from acpo.learning.distributions import Categorical, Distribution, Gaussian
from acpo.tasks.base import Discrete, TaskSpec

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "elu": jax.nn.elu,
}


class Perceptron(eqx.Module):
    """Dense layers with an activation between them; no hidden layer makes it linear."""

    weights: tuple[jax.Array, ...]
    biases: tuple[jax.Array, ...]
    activation: str = eqx.field(static=True)

    def __init__(self, sizes: Sequence[int], activation: str, *, key: jax.Array) -> None:
        """Every entry uniform on ±1/√fan-in: what PyTorch's linear layers, and so the baselines, use."""
        weights, biases = [], []
        for fan_in, fan_out in itertools.pairwise(sizes):
            key, weight_key, bias_key = jax.random.split(key, 3)
            bound = 1 / math.sqrt(fan_in)
            weights.append(jax.random.uniform(weight_key, (fan_in, fan_out), jnp.float32, -bound, bound))
            biases.append(jax.random.uniform(bias_key, (fan_out,), jnp.float32, -bound, bound))
        self.weights, self.biases, self.activation = tuple(weights), tuple(biases), activation

    def __call__(self, inputs: jax.Array) -> jax.Array:
        """[..., sizes[0]] → [..., sizes[-1]]"""
        activate = ACTIVATIONS[self.activation]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            inputs = activate(inputs @ weight + bias)
        return inputs @ self.weights[-1] + self.biases[-1]


class Policy(eqx.Module):
    """Observation to action distribution: Gaussian with one free log-std per entry, or categorical."""

    network: Perceptron
    log_std: jax.Array | None
    """[A], or None when actions are discrete."""

    def __init__(self, spec: TaskSpec, config: NetworkConfig, *, key: jax.Array) -> None:
        discrete = isinstance(spec.actions, Discrete)
        outputs = spec.actions.count if isinstance(spec.actions, Discrete) else spec.actions.size
        self.network = Perceptron(
            (spec.observation_size, *config.hidden, outputs), config.activation, key=key
        )
        self.log_std = None if discrete else jnp.full((outputs,), config.log_std, jnp.float32)

    def distribution(self, observation: jax.Array) -> Distribution:
        outputs = self.network(observation)
        if self.log_std is None:
            return Categorical(outputs)
        return Gaussian(outputs, jnp.broadcast_to(self.log_std, outputs.shape))


class Critics(eqx.Module):
    """1 + K separate value networks of one shape (reward first, then each cost), stacked."""

    networks: Perceptron
    """Every array has a leading axis [1 + K]."""

    def __init__(self, spec: TaskSpec, config: NetworkConfig, *, key: jax.Array) -> None:
        sizes = (spec.observation_size, *config.hidden, 1)
        keys = jax.random.split(key, 1 + len(spec.costs))
        self.networks = jax.vmap(lambda k: Perceptron(sizes, config.activation, key=k))(keys)

    def __call__(self, observation: jax.Array) -> jax.Array:
        """[..., O] → values [..., 1 + K]"""
        values = jax.vmap(lambda network: network(observation))(self.networks)
        return jnp.moveaxis(values[..., 0], 0, -1)
