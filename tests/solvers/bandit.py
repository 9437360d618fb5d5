"""Hand-made batches: one state, four actions, a uniform policy, every action tried equally often."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from acpo.config import Config, NetworkConfig, replace
from acpo.learning.batch import Batch
from acpo.learning.networks import Critics, Policy
from acpo.problem import Problem
from acpo.solvers.base import Solver, Update
from acpo.tasks.base import Discrete, TaskSpec

STEPS = 10.0
"""Length of an episode."""
TRIES = 40
"""Samples of each action."""
LINEAR = NetworkConfig(hidden=(), normalise=False)
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Compile quickly: what is tested here takes no time to run."""
CONFIG = replace(
    Config(),
    {
        "network.hidden": (),
        "network.normalise": False,
        "ppo.minibatch": 40,
        "ppo.passes": 8,
        "ppo.learning_rate": 0.03,
        "ppo.kl": 0.05,
        "trust_region.kl": 0.02,
        "trust_region.damping": 1e-3,
        "critic.passes": 1,
        "critic.minibatch": 160,
    },
)


def spec(costs: int, actions: int = 4, observation: int = 1) -> TaskSpec:
    names = tuple(f"cost_{i}" for i in range(costs))
    return TaskSpec("bandit", observation, Discrete(actions), names, int(STEPS))


def networks(costs: int, actions: int = 4, observation: int = 1) -> tuple[Policy, Critics]:
    """A policy whose logits are all zero, and critics."""
    shape = spec(costs, actions, observation)
    policy = Policy(shape, LINEAR, key=jax.random.PRNGKey(0))
    critics = Critics(shape, LINEAR, key=jax.random.PRNGKey(1))
    return jax.tree.map(jnp.zeros_like, policy), critics


def batch(
    advantages: list[list[float]], returns: list[float], anchor: tuple[float, ...] = (0.0,) * 4
) -> Batch:
    """`advantages`: a row of four numbers, of mean zero, for the reward and for each cost; `anchor`:
    logits of the projection's anchor, the present policy's unless said."""
    table = np.array(advantages).T
    actions = jnp.asarray(np.repeat(np.arange(4), TRIES))
    policy, _ = networks(len(returns) - 1)
    observations = jnp.ones((len(actions), 1))
    old = policy.distribution(observations)
    return Batch(
        observations=observations,
        actions=actions,
        log_probs=old.log_prob(actions),
        old=old,
        anchor=type(old)(jnp.broadcast_to(jnp.array(anchor), (len(actions), 4))),
        advantages=jnp.asarray(table[np.asarray(actions)], jnp.float32),
        targets=jnp.zeros((len(actions), len(returns))),
        returns=jnp.array(returns),
        unit=jnp.full(len(returns), STEPS),
    )


@functools.partial(jax.jit, static_argnums=(0, 1), compiler_options=QUICK)
def _update(
    solver: Solver, config: Config, start: tuple[object, Policy, Critics], problem: Problem, data: Batch
) -> Update:
    return solver.update(config, *start, problem, data, jax.random.PRNGKey(0), jnp.zeros(()))


def solve(
    solver: Solver, problem: Problem, data: Batch, config: Config = CONFIG, state: object = None
) -> tuple[np.ndarray, Update]:
    """One update from the uniform policy: the new probabilities, and all the solver says."""
    policy, critics = networks(data.returns.shape[0] - 1)
    if state is None:
        state = solver.init(config, policy, critics)
    # One compiled program a solver, whatever wrote the problem's numbers.
    problem = Problem(*(jnp.asarray(leaf, jnp.float32) for leaf in map(np.asarray, problem)))
    update = _update(solver, config, (state, policy, critics), problem, data)
    logits = update.policy.distribution(jnp.ones((1, 1))).logits[0]
    return np.asarray(jax.nn.softmax(logits)), update
