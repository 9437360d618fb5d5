"""Finite constrained Markov decision processes with a known optimum.

S states, A actions, K costs, H steps an episode. The policy may depend on the step, so the
optimum under budgets is a linear programme over the time-expanded occupancy measure
x[h, s, a] = P(s_h = s, a_h = a), and the observation is a one-hot of (step, state).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from acpo.errors import UserError
from acpo.learning.networks import Policy
from acpo.tasks.base import TRUST_REGION, DeviceTask, Discrete, Reset, TaskSpec, TimeStep


class TabularState(NamedTuple):
    state: jax.Array
    """[B] int"""
    step: jax.Array
    """[B] int"""
    key: jax.Array


class Optimum(NamedTuple):
    """The best policy under budgets."""

    value: float
    """Return per episode."""
    costs: np.ndarray
    """[K] per episode."""
    policy: np.ndarray
    """[H, S, A] probabilities; uniform where the optimum never comes."""


class TabularCMDP(DeviceTask):
    """transitions [S, A, S], reward [S, A], costs [K, S, A], initial [S]; episodes of `horizon` steps."""

    transitions: jax.Array
    reward: jax.Array
    costs: jax.Array
    initial: jax.Array
    horizon: int = eqx.field(static=True)

    def __init__(self, transitions: Any, reward: Any, costs: Any, initial: Any, horizon: int) -> None:
        as_float = lambda values: np.asarray(values, np.float64)  # noqa: E731
        transitions, reward, costs, initial = map(as_float, (transitions, reward, costs, initial))
        states, actions = reward.shape
        if transitions.shape != (states, actions, states):
            raise UserError(
                f"transitions have shape {transitions.shape}; with {states} states and {actions} actions"
                f" they need {(states, actions, states)}."
            )
        if costs.ndim != 3 or costs.shape[1:] != reward.shape:
            raise UserError(f"costs have shape {costs.shape}; they need (K, {states}, {actions}).")
        for name, table in (("transitions", transitions), ("initial", initial)):
            if (table < 0).any() or not np.allclose(table.sum(axis=-1), 1, atol=1e-6):
                raise UserError(f"{name} must be probabilities that sum to 1 over the last axis.")
        self.transitions = jnp.asarray(transitions, jnp.float32)
        self.reward = jnp.asarray(reward, jnp.float32)
        self.costs = jnp.asarray(costs, jnp.float32)
        self.initial = jnp.asarray(initial, jnp.float32)
        self.horizon = horizon

    @property
    def num_states(self) -> int:
        return self.reward.shape[-2]

    @property
    def num_actions(self) -> int:
        return self.reward.shape[-1]

    @property
    def num_costs(self) -> int:
        return self.costs.shape[-3]

    def spec(self) -> TaskSpec:
        return TaskSpec(
            name="tabular",
            observation_size=self.horizon * self.num_states,
            actions=Discrete(self.num_actions),
            costs=tuple(f"cost_{i}" for i in range(self.num_costs)),
            episode_steps=self.horizon,
        )

    def defaults(self, algo: str) -> dict[str, Any]:
        """Exact representation: linear networks on a one-hot are tables, and nothing is discounted."""
        # Budgets that are steered to half a per cent have to be measured to that; a trust region's step
        # costs a hundred sweeps over the batch.
        envs = 1600 if algo == "acpo" else 400 if algo in TRUST_REGION else 640
        batch = envs * self.horizon
        # Under loose budgets a table becomes certain of what it will not be allowed, and hardly comes
        # back: budgets have to be tight while there is still entropy, of which the bonus's last goes
        # after two thirds.
        entropy = {"ipo-c": 0.1, "acpo-lag": 0.2}.get(algo, 0.05)
        return {
            "network.hidden": (),
            "network.normalise": False,
            "advantage.discount": 1.0,
            "advantage.cost_discount": 1.0,
            "rollout.envs": envs,
            "rollout.batch": batch,
            "ppo.minibatch": batch,
            "ppo.learning_rate": 0.1,
            "ppo.passes": 5,
            "ppo.entropy": entropy,
            "critic.learning_rate": 0.05,
            "critic.minibatch": batch,
            "critic.weight_decay": 0.0,
            # An optimum lies on its limits, so the barrier has to harden; but returns are known to
            # 1 % here, and what noise makes of a harder one is a switch.
            "interior_point.final_kappa": 0.1,
            # Returns are known to a third of a per cent in the mean of a stage: budgets may follow that,
            # but not wander off where a cost does not bind.
            "adversarial.noise": 0.0,
            "adversarial.gain_under": 0.5,
            "adversarial.margin": 0.001,
            "adversarial.lowered": 0.8,
            "adversarial.patience": 0.0,
            "adversarial.deadline": 0.5 if algo == "acpo" else 0.3,
            "curriculum.end": 0.35,
            # The Fisher matrix of a table holds visiting frequencies, a hundredth each.
            "trust_region.damping": 1e-3,
            "trust_region.entropy": 0.3 if algo == "acpo-cpo" else 0.1,
            # A multiplier that only integrates swings about its value, and training ends in mid-swing.
            "lagrangian.learning_rate": 0.05,
            "lagrangian.proportional": 20.0,
            "switching.tolerance": 0.01,
            "switching.tolerance_unit": "budget",
        }

    def observe(self, state: jax.Array, step: jax.Array) -> jax.Array:
        """[B, H·S]"""
        return jax.nn.one_hot(step * self.num_states + state, self.horizon * self.num_states)

    def reset(self, key: jax.Array, num_envs: int) -> tuple[TabularState, Reset]:
        """Clocks start at zero: a batch holds whole episodes when its length is a multiple of H."""
        key, start_key = jax.random.split(key)
        state = draw(start_key, jnp.broadcast_to(self.initial, (num_envs, self.num_states)))
        step = jnp.zeros(num_envs, jnp.int32)
        return TabularState(state, step, key), Reset(self.observe(state, step), step)

    def step(self, state: TabularState, actions: jax.Array) -> tuple[TabularState, TimeStep]:
        key, next_key, start_key = jax.random.split(state.key, 3)
        rows = self.transitions[state.state, actions]
        following = draw(next_key, rows)
        step = state.step + 1
        over = step >= self.horizon
        fresh = draw(start_key, jnp.broadcast_to(self.initial, rows.shape))
        new = TabularState(jnp.where(over, fresh, following), jnp.where(over, 0, step), key)
        never = jnp.zeros_like(over)
        return new, TimeStep(
            observation=self.observe(new.state, new.step),
            # After the last step nothing follows; the value of this observation is not used.
            final_observation=self.observe(following, jnp.minimum(step, self.horizon - 1)),
            reward=self.reward[state.state, actions],
            costs=self.costs[:, state.state, actions].T,
            terminated=over,
            truncated=never,
            failed=never,
        )

    # Exact values, by dynamic programming and linear programming in double precision.

    def occupancy(self, policy: np.ndarray) -> np.ndarray:
        """x[h, s, a] of a policy [H, S, A]."""
        transitions = _exact(self.transitions)
        result = np.zeros((self.horizon, self.num_states, self.num_actions))
        here = _exact(self.initial)
        for h in range(self.horizon):
            result[h] = here[:, None] * policy[h]
            here = np.einsum("sa,sat->t", result[h], transitions)
        return result

    def evaluate(self, policy: np.ndarray) -> tuple[float, np.ndarray]:
        """Exact return and costs [K] per episode of a policy [H, S, A]; nothing is sampled."""
        visits = self.occupancy(np.asarray(policy, np.float64)).sum(axis=0)
        reward, costs = np.asarray(self.reward, np.float64), np.asarray(self.costs, np.float64)
        return float(np.sum(visits * reward)), np.einsum("sa,ksa->k", visits, costs)

    def values(
        self, policy: np.ndarray, signal: np.ndarray, discount: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Exact V [H + 1, S] and Q [H, S, A] of a signal [S, A] under a policy [H, S, A]."""
        transitions = _exact(self.transitions)
        value = np.zeros((self.horizon + 1, self.num_states))
        action_value = np.zeros((self.horizon, self.num_states, self.num_actions))
        for h in reversed(range(self.horizon)):
            action_value[h] = signal + discount * transitions @ value[h + 1]
            value[h] = np.sum(policy[h] * action_value[h], axis=-1)
        return value, action_value

    def policy_table(self, policy: Policy) -> np.ndarray:
        """π[H, S, A] of a categorical policy."""
        logits = policy.distribution(jnp.eye(self.horizon * self.num_states)).logits  # type: ignore[union-attr]
        table = np.asarray(jax.nn.softmax(logits), np.float64)
        return table.reshape(self.horizon, self.num_states, self.num_actions)

    def uniform(self) -> np.ndarray:
        return np.full((self.horizon, self.num_states, self.num_actions), 1 / self.num_actions)

    def optimum(self, budgets: Any = None, minimise_cost: int | None = None) -> Optimum:
        """The most reward (or, with `minimise_cost`, the least of that cost) under budgets [K].

        Raises `UserError` when no policy keeps the budgets.
        """
        shape = (self.horizon, self.num_states, self.num_actions)
        flow, inflow = _flow(_exact(self.transitions), _exact(self.initial), self.horizon)
        reward, costs = np.asarray(self.reward, np.float64), np.asarray(self.costs, np.float64)
        goal = -reward if minimise_cost is None else costs[minimise_cost]
        rows = np.stack([np.broadcast_to(c, shape).ravel() for c in costs]) if len(costs) else None
        limited = budgets is not None and rows is not None
        solution = linprog(
            np.broadcast_to(goal, shape).ravel(),
            A_ub=rows if limited else None,
            b_ub=np.broadcast_to(np.asarray(budgets, np.float64), (len(costs),)) if limited else None,
            A_eq=flow,
            b_eq=inflow,
            bounds=(0, None),
            method="highs",
        )
        if not solution.success:
            raise UserError(f"No policy of this task keeps the budgets {budgets}.")
        visits = np.maximum(solution.x.reshape(shape), 0)
        total = visits.sum(axis=-1, keepdims=True)
        policy = np.where(total > 1e-12, visits / np.maximum(total, 1e-12), 1 / self.num_actions)
        value, spent = self.evaluate(policy)
        return Optimum(value, spent, policy)


def draw(key: jax.Array, probabilities: jax.Array) -> jax.Array:
    """[B] an index each from rows [B, S], by one uniform number a row: a fifth of the work of
    `jax.random.categorical`, which draws one an entry."""
    below = jnp.cumsum(probabilities[:, :-1], axis=-1)
    return jnp.sum(jax.random.uniform(key, (below.shape[0], 1)) >= below, axis=-1)


def _exact(table: jax.Array) -> np.ndarray:
    """Probabilities in double precision; float32 rows do not sum to one."""
    values = np.asarray(table, np.float64)
    return values / values.sum(axis=-1, keepdims=True)


def _flow(
    transitions: np.ndarray, initial: np.ndarray, horizon: int
) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Σ_a x[h, s, a] − Σ_{s', a'} x[h − 1, s', a'] P(s | s', a') = initial(s) at h = 0, else 0."""
    states, actions, _ = transitions.shape
    leave = scipy.sparse.kron(scipy.sparse.eye_array(states), np.ones((1, actions)))
    arrive = scipy.sparse.csr_array(transitions.reshape(states * actions, states).T)
    matrix = scipy.sparse.kron(scipy.sparse.eye_array(horizon), leave) - scipy.sparse.kron(
        scipy.sparse.eye_array(horizon, k=-1), arrive
    )
    right = np.zeros(horizon * states)
    right[:states] = initial
    return matrix.tocsr(), right


def random_cmdp(
    seed: int, states: int = 8, actions: int = 3, costs: int = 1, horizon: int = 10
) -> tuple[TabularCMDP, np.ndarray]:
    """A random task and budgets [K] halfway between the least possible cost and the cost of the
    unconstrained optimum.

    Instances whose feasible set is nearly empty (no policy at 0.9 of the budgets) say nothing about
    an algorithm and are drawn again.
    """
    rng = np.random.default_rng(seed)
    while True:
        task = TabularCMDP(
            transitions=rng.dirichlet(np.full(states, 0.5), size=(states, actions)),
            reward=rng.uniform(size=(states, actions)),
            costs=rng.uniform(size=(costs, states, actions)),
            initial=rng.dirichlet(np.ones(states)),
            horizon=horizon,
        )
        least = np.array([task.optimum(minimise_cost=i).costs[i] for i in range(costs)])
        greedy = task.optimum().costs
        budgets = 0.5 * (least + greedy)
        try:
            task.optimum(0.9 * budgets)
        except UserError:
            continue
        return task, budgets


def make(num_envs: int, backend: str = "auto", seed: int = 0, costs: int = 1, **options: Any) -> TabularCMDP:
    """The registered task "Tabular": `random_cmdp` with options by name."""
    return random_cmdp(seed, costs=costs, **options)[0]
