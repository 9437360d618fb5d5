"""A trained policy, out of a checkpoint: what a user calls and an evaluation steps."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from acpo.config import Config
from acpo.errors import UserError
from acpo.learning import normaliser as normalisation
from acpo.learning.networks import Policy
from acpo.learning.normaliser import Normaliser
from acpo.runs import arrays as storing
from acpo.runs.arrays import Arrays
from acpo.runs.checkpoints import Checkpoint
from acpo.tasks.base import TaskSpec

Which = Literal["last", "best"]


class TrainedPolicy:
    """One seed's policy with the statistics that standardise its observations."""

    def __init__(self, spec: TaskSpec, policy: Policy, normaliser: Normaliser | None, iteration: int) -> None:
        self.spec, self.policy, self.normaliser, self.iteration = spec, policy, normaliser, iteration

    def __call__(self, observation: Any, deterministic: bool = True, seed: int = 0) -> np.ndarray:
        """The action for one observation [O], or actions for several [B, O].

        Deterministic is the mean (or the likeliest of discrete actions); otherwise sampled, with
        `seed` choosing the sample.
        """
        observation = np.asarray(observation, np.float32)
        if observation.shape[-1:] != (self.spec.observation_size,):
            raise UserError(
                f"An observation of {self.spec.name} has {self.spec.observation_size} numbers, but this one"
                f" has shape {observation.shape}."
            )
        key = None if deterministic else jax.random.PRNGKey(seed)
        return np.asarray(act(self.policy, self.normaliser, observation, key))


@jax.jit
def act(
    policy: Policy, normaliser: Normaliser | None, observation: jax.Array, key: jax.Array | None
) -> jax.Array:
    """Without a key the distribution's mode."""
    if normaliser is not None:
        observation = normalisation.apply(normaliser, observation)
    distribution = policy.distribution(observation)
    return distribution.mode() if key is None else distribution.sample(key)


def from_checkpoint(
    checkpoint: Checkpoint, config: Config, spec: TaskSpec, which: Which
) -> list[TrainedPolicy]:
    """The policy of every seed: the last one, or the best that kept its budgets."""
    iterations = [checkpoint.iteration] * config.seeds
    prefix = "state"
    if which == "best":
        prefix = "best"
        iterations = [int(k) for k in checkpoint.arrays["best.iteration"]]
        if 0 in iterations:
            seed = config.seed + iterations.index(0)
            raise UserError(
                f"No policy of seed {seed} has kept its budgets yet, so there is no best one;"
                " use --checkpoint last."
            )
    template = Policy(spec, config.network, key=jax.random.PRNGKey(0))
    policy = _stacked(template, checkpoint.arrays, f"{prefix}.policy", config.seeds)
    normaliser = None
    if config.network.normalise:
        empty = normalisation.init(spec.observation_size)
        normaliser = _stacked(empty, checkpoint.arrays, f"{prefix}.normaliser", config.seeds)

    def of_seed(stacked: Any, s: int) -> Any:
        return jax.tree.map(lambda leaf: leaf[s], stacked)

    return [
        TrainedPolicy(spec, of_seed(policy, s), of_seed(normaliser, s), iterations[s])
        for s in range(config.seeds)
    ]


def _stacked(template: Any, arrays: Arrays, prefix: str, seeds: int) -> Any:
    stacked = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (seeds, *leaf.shape)), template)
    return storing.unflatten(stacked, arrays, prefix)
