"""The paper's bounds beside what a run on a tabular task really did. Nothing is sampled.

Discounted quantities in the infinite-horizon reading: after its last step an episode stays in an
end state that pays and costs nothing, whatever is done there. H steps, S states, A actions, 1 + K
signals (reward first), n updates.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import brentq

from acpo.config import Config
from acpo.errors import UserError
from acpo.problem import MAX_REWARD, MIN_COST, PROJECTION
from acpo.tasks.tabular import TabularCMDP
from acpo.training import Trainer


class Recording(NamedTuple):
    """What a run did: n + 1 policies and the n updates between them."""

    policies: list[np.ndarray]
    """n + 1 tables [H, S, A]"""
    stages: list[int]
    """the stage each update was made in"""
    events: list[int]
    """convergence events before and in each update"""


def record(config: Config, task: TabularCMDP, desired: np.ndarray) -> Recording:
    """Train on `task` and keep every policy."""
    trainer = Trainer(config, task, desired)

    def table() -> np.ndarray:
        return task.policy_table(jax.tree.map(lambda leaf: leaf[0], trainer.state.policy))

    policies, stages, events = [table()], [], []
    for metrics in trainer.run():
        policies.append(table())
        stages.append(int(metrics["stage"][0]))
        events.append(int(metrics["events"][0]))
    return Recording(policies, stages, events)


class Exact(NamedTuple):
    """A policy, measured."""

    returns: np.ndarray
    """[1 + K] J = E Σ γ^h signal"""
    advantages: np.ndarray
    """[1 + K, H, S, A]"""
    visits: np.ndarray
    """[H, S] d_π = (1 − γ) γ^h P(s_h = s); what is left to 1 is in the end state"""


def measure(task: TabularCMDP, policy: np.ndarray, discount: float) -> Exact:
    signals = [np.asarray(task.reward, np.float64), *np.asarray(task.costs, np.float64)]
    initial = np.asarray(task.initial, np.float64)
    advantages, returns = [], []
    for signal in signals:
        values, action_values = task.values(policy, signal, discount)
        advantages.append(action_values - values[:-1, :, None])
        returns.append(initial @ values[0] / initial.sum())
    ages = (1 - discount) * discount ** np.arange(task.horizon)
    visits = ages[:, None] * task.occupancy(policy).sum(axis=-1)
    return Exact(np.array(returns), np.array(advantages), visits)


def divergence(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """[H, S] KL(new ‖ old) at every step and state."""
    ratio = np.where(new > 0, new, 1.0) / np.where(new > 0, np.maximum(old, 1e-300), 1.0)
    return np.sum(new * np.log(ratio), axis=-1)


class Change(NamedTuple):
    """One update from π to π', in the terms of the performance bound."""

    kl: float
    """E_{d_π} KL(π' ‖ π)"""
    epsilons: np.ndarray
    """[1 + K] max_s |E_{a∼π'} A^π(s, a)|"""
    surrogates: np.ndarray
    """[1 + K] E_{d_π, π'}[A^π] / (1 − γ)"""
    differences: np.ndarray
    """[1 + K] J(π') − J(π)"""

    def gap(self, discount: float) -> np.ndarray:
        """[1 + K] how far a difference can be from its surrogate: √2·γ·ε·√KL / (1 − γ)²."""
        return math.sqrt(2 * self.kl) * discount / (1 - discount) ** 2 * self.epsilons


def compare(task: TabularCMDP, old: np.ndarray, new: np.ndarray, discount: float) -> Change:
    before = measure(task, old, discount)
    expected = np.sum(new * before.advantages, axis=-1)
    return Change(
        kl=float(np.sum(before.visits * divergence(new, old))),
        epsilons=np.abs(expected).max(axis=(1, 2)),
        surrogates=np.sum(before.visits * expected, axis=(1, 2)) / (1 - discount),
        differences=measure(task, new, discount).returns - before.returns,
    )


@dataclasses.dataclass(frozen=True)
class Row:
    """One switch: what a budget did, and what the theory allows."""

    update: int
    """updates made before this switch"""
    signal: int
    """0: g^k − g^{k−1}, at the end of max-reward; i: d_i^{k+1} − d_i^k, at the end of min-cost"""
    moved: float
    """the change, from exact returns"""
    bound: float
    """Theorem on alternation: ∓√(2δ)·γ/(1 − γ)²·(n_1 + n_2)·ε, a least for g and a most for d"""
    bound_interior: float
    """the same with the interior point's n/((1 − γ)·t) added (Proposition)"""
    bound_lemma: float
    """the same with every update's own δ and ε instead of their largest: the sum in the proofs"""
    updates: tuple[int, int]
    """updates of the two stages: max-reward, min-cost"""
    delta: float
    """the largest KL taken in them"""
    epsilon: float
    """ε of the signal over them"""

    @property
    def holds(self) -> bool:
        """Whether the theorem's bound was kept."""
        return self.moved >= self.bound if self.signal == 0 else self.moved <= self.bound

    @property
    def holds_interior(self) -> bool:
        """Whether the proposition's bound was kept."""
        return self.moved >= self.bound_interior if self.signal == 0 else self.moved <= self.bound_interior


def switches(task: TabularCMDP, recording: Recording, discount: float, inverse_t: float = 0.0) -> list[Row]:
    """A row for every switch that ends a whole cycle of the two alternating stages.

    `inverse_t` is 1/t of the barrier, in units of E[A_R] as in Eq. (12); with several limits, their
    sum. The theorem speaks of two stages that follow one another: projections and budgets moved by
    a convergence event begin a new chain, and a skipped min-cost stage prolongs max-reward.
    """
    if not 0 < discount < 1:
        raise UserError("The bounds need a discount between 0 and 1.")
    policies, stages, events = recording
    rows: list[Row] = []
    # Since the last budget of the same kind: where it stood and the updates made since.
    chain: dict[int, tuple[np.ndarray, list[tuple[int, Change]]]] = {}
    for update, stage in enumerate(stages):
        returns = measure(task, policies[update], discount).returns
        if update:
            moved_on, last = stage != stages[update - 1], stages[update - 1]
            if moved_on and last in (MAX_REWARD, MIN_COST):
                if last in chain:
                    rows += _rows(last, update, returns, *chain[last], discount, inverse_t)
                chain[last] = (returns, [])
            if PROJECTION in (stage, last) or events[update] > events[update - 1]:
                chain.clear()
        change = compare(task, policies[update], policies[update + 1], discount)
        for _, changes in chain.values():
            changes.append((stage, change))
    return rows


def _rows(
    stage: int,
    update: int,
    now: np.ndarray,
    before: np.ndarray,
    changes: list[tuple[int, Change]],
    discount: float,
    inverse_t: float,
) -> list[Row]:
    """The rows of one switch that ends `stage`: of the reward, or of every cost."""
    counts = tuple(sum(made == kind for made, _ in changes) for kind in (MAX_REWARD, MIN_COST))
    delta = max(change.kl for _, change in changes)
    barrier = inverse_t / (1 - discount) * counts[stage == MIN_COST]
    rows = []
    for signal in (0,) if stage == MAX_REWARD else range(1, len(now)):
        sign = -1 if signal == 0 else 1
        epsilon = max(float(change.epsilons[signal]) for _, change in changes)
        most = math.sqrt(2 * delta) * discount / (1 - discount) ** 2 * len(changes) * epsilon
        rows.append(
            Row(
                update=update,
                signal=signal,
                moved=float(now[signal] - before[signal]),
                bound=sign * most,
                bound_interior=sign * (most + barrier),
                bound_lemma=sign * sum(float(change.gap(discount)[signal]) for _, change in changes),
                updates=(counts[0], counts[1]),
                delta=delta,
                epsilon=epsilon,
            )
        )
    return rows


def broken(rows: Sequence[Row]) -> list[Row]:
    """The rows whose bound, the theorem's or the proposition's, was not kept."""
    return [row for row in rows if not (row.holds and row.holds_interior)]


# The error of a barrier, on exact surrogates.


class Surrogate(NamedTuple):
    """The best policy of one update, with its surrogate objective."""

    value: float
    """E_{d_πk, π}[A_R]"""
    slack: float
    """d − J_C(π_k) − E_{d_πk, π}[A_C]/(1 − γ)"""
    kl: float
    multiplier: float
    """λ of the limit"""
    policy: np.ndarray


def surrogate_optimum(
    task: TabularCMDP, old: np.ndarray, budget: float, radius: float, discount: float, inverse_t: float = 0.0
) -> Surrogate:
    """The exact solution of Eq. (7) for one cost, or with `inverse_t` > 0 of its barrier form, Eq. (12).

    Both are concave problems over tables of probabilities, whose Lagrangian is maximised in closed
    form by π ∝ π_k·exp((A_R − λ·A_C/(1 − γ))/β). For a given λ, β is where KL(π ‖ π_k) = δ; then
    λ = 0 or the slack is zero, or with a barrier λ·slack = 1/t.
    """
    exact = measure(task, old, discount)
    reward, cost = exact.advantages[0], exact.advantages[1] / (1 - discount)
    log_old = np.log(np.maximum(old, 1e-300))

    def tilted(multiplier: float, temperature: float) -> np.ndarray:
        scores = log_old + (reward - multiplier * cost) / temperature
        scores -= scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores)
        return weights / weights.sum(axis=-1, keepdims=True)

    def kl(policy: np.ndarray) -> float:
        return float(np.sum(exact.visits * divergence(policy, old)))

    def best(multiplier: float) -> Surrogate:
        def excess(log_temperature: float) -> float:
            return kl(tilted(multiplier, math.exp(log_temperature))) - radius

        scale = math.log(1e-3 + float(np.abs(reward - multiplier * cost).max()))
        coldest = scale - 9
        # Where even the greedy policy is inside the trust region, no temperature is needed.
        root = brentq(excess, coldest, scale + 12, xtol=1e-12) if excess(coldest) > 0 else coldest
        policy = tilted(multiplier, math.exp(root))
        gained = np.sum(exact.visits[:, :, None] * policy * np.stack([reward, cost]), axis=(1, 2, 3))
        slack = budget - float(exact.returns[1]) - float(gained[1])
        return Surrogate(float(gained[0]), slack, kl(policy), multiplier, policy)

    tightest = best(1e6)
    if tightest.slack <= 0:
        raise UserError("No policy inside the trust region keeps the budget.")
    condition: Callable[[float], float]
    if inverse_t == 0:
        free = best(0.0)
        if free.slack >= 0:
            return free
        condition = lambda log_multiplier: best(math.exp(log_multiplier)).slack  # noqa: E731
    else:

        def condition(log_multiplier: float) -> float:
            multiplier = math.exp(log_multiplier)
            return multiplier * best(multiplier).slack - inverse_t

    return best(math.exp(brentq(condition, math.log(1e-12), math.log(1e6), xtol=1e-12)))
