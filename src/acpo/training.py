"""One training iteration as a pure function of one explicit state, and the loop around it.

    collect → count episodes → advantages → schedule → problem → solver → new state

S seeds, T steps, B environments, N = T·B samples, K costs.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from acpo import algorithms
from acpo.config import AdvantageConfig, Config
from acpo.errors import NonFiniteError
from acpo.learning import advantages as gae
from acpo.learning import episodes as counting
from acpo.learning import normaliser as normalisation
from acpo.learning.batch import Batch, normalise_advantages
from acpo.learning.episodes import EpisodeState
from acpo.learning.networks import Critics, Policy
from acpo.learning.normaliser import Normaliser
from acpo.rollout import Rollout, act, collect, collect_from_host
from acpo.tasks.base import DeviceTask, HostTask, Reset, TaskSpec

Metrics = dict[str, Any]
SIGNALS = ("observation", "reward", "cost", "gradient")


class TrainState(NamedTuple):
    """Everything that changes while training, except a host simulator's own state."""

    policy: Policy
    critics: Critics
    normaliser: Normaliser | None
    """None when observations are not normalised"""
    solver: Any
    schedule: Any
    episodes: EpisodeState
    task: Any
    """A device task's state; None for a host simulator"""
    observation: jax.Array
    """[B, O] to act on next"""
    key: jax.Array
    iteration: jax.Array
    """[] int"""


def initialise(
    config: Config, spec: TaskSpec, desired: jax.Array, key: jax.Array, start: Reset, task_state: Any
) -> TrainState:
    """The state before the first iteration; `start` is what the environments began with."""
    algorithm = algorithms.get(config.algo)
    policy_key, critic_key, key = jax.random.split(key, 3)
    policy = Policy(spec, config.network, key=policy_key)
    # The mean starts near zero: the first actions are then all exploration, none of it a bias.
    critics = Critics(spec, config.network, key=critic_key)
    normaliser = None
    observation = jnp.asarray(start.observation, jnp.float32)
    if config.network.normalise:
        normaliser = normalisation.update(normalisation.init(spec.observation_size), observation)
    return TrainState(
        policy=policy,
        critics=critics,
        normaliser=normaliser,
        solver=algorithm.solver.init(config, policy, critics),
        schedule=algorithm.schedule.init(config, desired, policy),
        episodes=counting.init(
            jnp.asarray(start.elapsed), 1 + len(spec.costs), config.rollout.episode_window
        ),
        task=task_state,
        observation=observation,
        key=key,
        iteration=jnp.zeros((), jnp.int32),
    )


def learn(
    config: Config, spec: TaskSpec, state: TrainState, rollout: Rollout, key: jax.Array
) -> tuple[TrainState, Metrics]:
    """From a rollout [T, B] to the next policy, critics, schedule and counts."""
    algorithm = algorithms.get(config.algo)
    steps = rollout.steps
    terminated, truncated = jnp.asarray(steps.terminated), jnp.asarray(steps.truncated)
    signals = jnp.concatenate([jnp.asarray(steps.reward)[..., None], jnp.asarray(steps.costs)], axis=-1)
    episodes, finished = counting.count(
        state.episodes,
        signals,
        terminated,
        truncated,
        spec.episode_steps,
        per_step=config.rollout.returns == "steps",
    )

    def seen(raw: Any) -> jax.Array:
        raw = jnp.asarray(raw)
        return raw if state.normaliser is None else normalisation.apply(state.normaliser, raw)

    observations = seen(rollout.observations)
    values = state.critics(observations)
    estimates = gae.estimate(
        signals,
        values,
        state.critics(seen(steps.final_observation)),
        terminated,
        truncated,
        *_horizons(config.advantage, len(spec.costs)),
    )
    batch = _batch(config, algorithm, state, rollout, observations, values, estimates, episodes)
    schedule, problem = algorithm.schedule.update(
        config, state.schedule, episodes.returns, state.policy, state.iteration
    )
    if algorithm.schedule.anchor is not None:
        # The anchor is chosen by this very update, so its distribution is computed after it.
        anchor = algorithm.schedule.anchor(schedule).distribution(batch.observations)
        batch = batch._replace(anchor=anchor)
    progress = state.iteration / config.iterations
    update = algorithm.solver.update(
        config, state.solver, state.policy, state.critics, problem, batch, key, progress
    )
    report = algorithm.schedule.report(schedule)
    metrics: Metrics = {
        "iteration": state.iteration + 1,
        "reward": episodes.returns[0],
        "costs": episodes.returns[1:],
        "episode_length": episodes.length,
        "episodes": finished,
        "failed": jnp.sum(jnp.asarray(steps.failed)),
        "budgets": report.budgets,
        "reward_budget": report.reward_budget,
        "stage": report.stage,
        "events": report.events,
        "finished": report.finished,
        "entropy": jnp.mean(batch.old.entropy()),
        "explained_variance": _explained_variance(batch.targets, values.reshape(batch.targets.shape)),
        **update.metrics,
        **_find_non_finite(rollout, update.metrics["gradient_finite"]),
    }
    if state.normaliser is not None:
        flat = jnp.asarray(rollout.observations).reshape(-1, spec.observation_size)
        state = state._replace(normaliser=normalisation.update(state.normaliser, flat))
    return state._replace(
        policy=update.policy,
        critics=update.critics,
        solver=update.state,
        schedule=schedule,
        episodes=episodes,
        iteration=state.iteration + 1,
    ), metrics


def _horizons(settings: AdvantageConfig, costs: int) -> tuple[jax.Array, jax.Array]:
    """Discounts and traces, [1 + K] each."""
    discounts = jnp.array([settings.discount] + [settings.cost_discount] * costs)
    traces = jnp.array([settings.trace] + [settings.cost_trace] * costs)
    return discounts, traces


def _batch(
    config: Config,
    algorithm: algorithms.Algorithm,
    state: TrainState,
    rollout: Rollout,
    observations: jax.Array,
    values: jax.Array,
    estimates: jax.Array,
    episodes: EpisodeState,
) -> Batch:
    """Flatten [T, B] into N samples and put advantages into the solvers' units."""
    flat = lambda leaf: leaf.reshape(-1, *leaf.shape[2:])  # noqa: E731
    observations, actions = flat(observations), flat(jnp.asarray(rollout.actions))
    old = state.policy.distribution(observations)
    advantages, divisors = normalise_advantages(flat(estimates))
    settings = config.advantage
    scale = {
        "episode": jnp.full(divisors.shape, episodes.length),
        "discount": 1 / (1 - jnp.minimum(_horizons(settings, len(divisors) - 1)[0], 1 - 1e-6)),
        "one": jnp.ones_like(divisors),
    }[settings.surrogate_scale]
    return Batch(
        observations=observations,
        actions=actions,
        log_probs=old.log_prob(actions),
        old=old,
        anchor=None,
        advantages=advantages,
        targets=flat(estimates + values),
        returns=episodes.returns,
        unit=divisors * scale,
    )


def _explained_variance(targets: jax.Array, values: jax.Array) -> jax.Array:
    """[1 + K] share of the targets' variance that the critics explain."""
    return 1 - jnp.var(targets - values, axis=0) / (jnp.var(targets, axis=0) + 1e-8)


def _find_non_finite(rollout: Rollout, gradient_finite: jax.Array) -> Metrics:
    """Which of SIGNALS became non-finite, [4] bool, and in which environment first, [3] int."""
    steps = rollout.steps
    bad_env = [
        jnp.any(~jnp.isfinite(jnp.asarray(leaf)).reshape(*leaf.shape[:2], -1), axis=(0, 2))
        for leaf in (rollout.observations, steps.reward, steps.costs)
    ]
    bad_env[0] |= jnp.any(~jnp.isfinite(jnp.asarray(steps.final_observation)), axis=(0, 2))
    return {
        "non_finite": jnp.stack([*(jnp.any(bad) for bad in bad_env), ~gradient_finite]),
        "non_finite_env": jnp.stack([jnp.argmax(bad) for bad in bad_env]),
    }


def gather(config: Config, task: DeviceTask, state: TrainState) -> tuple[TrainState, Rollout, jax.Array]:
    """A rollout on a device task, the state after it, and the key to learn with."""
    key, rollout_key, learn_key = jax.random.split(state.key, 3)
    task_state, observation, rollout = collect(
        task,
        state.task,
        state.observation,
        state.policy,
        state.normaliser,
        rollout_key,
        config.rollout.batch // config.rollout.envs,
    )
    return state._replace(task=task_state, observation=observation, key=key), rollout, learn_key


def iterate(config: Config, task: DeviceTask, state: TrainState) -> tuple[TrainState, Metrics]:
    """One iteration on a device task: pure, jitted and vmapped as it is."""
    state, rollout, key = gather(config, task, state)
    return learn(config, task.spec(), state, rollout, key)


def start(config: Config, task: DeviceTask, desired: jax.Array, key: jax.Array) -> TrainState:
    """The first state on a device task."""
    task_key, key = jax.random.split(key)
    task_state, reset = task.reset(task_key, config.rollout.envs)
    return initialise(config, task.spec(), desired, key, reset, task_state)


def over_seeds(function: Any, state: Any, *rest: Any) -> Any:
    """`function(state, *rest)` for every seed along the leading axis of all arguments.

    A single seed is computed without the axis: it is then the same program as a run of its own.
    """
    if jax.tree.leaves(state)[0].shape[0] == 1:
        single = jax.tree.map(lambda leaf: leaf[0], (state, *rest))
        return jax.tree.map(lambda leaf: leaf[None], function(*single))
    return jax.vmap(function)(state, *rest)


@functools.partial(jax.jit, static_argnums=0)
def _iterate_seeds(config: Config, task: DeviceTask, state: TrainState) -> tuple[TrainState, Metrics]:
    return over_seeds(lambda s: iterate(config, task, s), state)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _learn_seeds(
    config: Config, spec: TaskSpec, state: TrainState, rollout: Rollout, keys: jax.Array
) -> tuple[TrainState, Metrics]:
    return over_seeds(lambda s, r, k: learn(config, spec, s, r, k), state, rollout, keys)


@jax.jit
def _act_seeds(
    policy: Policy, normaliser: Normaliser | None, observations: jax.Array, keys: jax.Array, step: jax.Array
) -> jax.Array:
    def one(pair: tuple[Policy, Normaliser | None], observation: jax.Array, key: jax.Array) -> jax.Array:
        return act(*pair, observation, jax.random.fold_in(key, step))

    return over_seeds(one, (policy, normaliser), observations, keys)


@jax.jit
def _split_seeds(keys: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Next, rollout and learning keys, [S, …] each."""
    split = jax.vmap(lambda key: jax.random.split(key, 3))(keys)
    return split[:, 0], split[:, 1], split[:, 2]


class Trainer:
    """Holds the state of S seeds and advances it; whoever drives it logs, saves and stops."""

    def __init__(self, config: Config, task: DeviceTask | list[HostTask], desired: np.ndarray) -> None:
        """`task`: one device task for all seeds, or one host simulator for each."""
        self.config = config
        self.task = task
        self.spec = (task[0] if isinstance(task, list) else task).spec()
        self.desired = jnp.asarray(desired, jnp.float32)
        keys = jnp.stack([jax.random.PRNGKey(config.seed + s) for s in range(config.seeds)])
        if isinstance(task, list):
            resets = [simulator.reset(config.seed + s) for s, simulator in enumerate(task)]
            reset = Reset(
                *(np.stack([np.asarray(getattr(r, name)) for r in resets]) for name in Reset._fields)
            )

            def first(key: jax.Array, reset: Reset) -> TrainState:
                return initialise(config, self.spec, self.desired, key, reset, None)

            self.state: TrainState = jax.jit(functools.partial(over_seeds, first))(keys, reset)
        else:

            def first_on_device(key: jax.Array) -> TrainState:
                return start(config, task, self.desired, key)

            self.state = jax.jit(functools.partial(over_seeds, first_on_device))(keys)

    @property
    def iteration(self) -> int:
        return int(self.state.iteration[0])

    @property
    def done(self) -> bool:
        return self.iteration >= self.config.iterations

    def iterate(self) -> Metrics:
        """Advance one iteration; metrics are NumPy arrays with a leading axis [S].

        Raises `NonFiniteError` and keeps the last good state when a signal stops being finite.
        """
        began = time.perf_counter()
        if isinstance(self.task, list):
            new, metrics = self._iterate_host(self.task)
        else:
            new, metrics = _iterate_seeds(self.config, self.task, self.state)
        metrics = jax.device_get(metrics)
        self._check_finite(metrics)
        self.state = new
        metrics["seconds"] = np.full(self.config.seeds, time.perf_counter() - began)
        return metrics

    def _iterate_host(self, simulators: list[HostTask]) -> tuple[TrainState, Metrics]:
        state = self.state
        keys, rollout_keys, learn_keys = _split_seeds(state.key)

        def acting(observations: list[np.ndarray], step: int) -> np.ndarray:
            return np.asarray(
                _act_seeds(state.policy, state.normaliser, np.stack(observations), rollout_keys, step)
            )

        began = time.perf_counter()
        observations, rollout = collect_from_host(
            simulators,
            list(np.asarray(state.observation)),
            acting,
            self.config.rollout.batch // self.config.rollout.envs,
        )
        seconds = time.perf_counter() - began
        new, metrics = _learn_seeds(self.config, self.spec, state, rollout, learn_keys)
        metrics["rollout_seconds"] = np.full(self.config.seeds, seconds)
        return new._replace(observation=jnp.asarray(np.stack(observations)), key=keys), metrics

    def _check_finite(self, metrics: Metrics) -> None:
        for seed, found in enumerate(metrics.pop("non_finite")):
            for index, bad in enumerate(found):
                if bad:
                    where = ""
                    if index < len(SIGNALS) - 1:
                        where = f" in environment {int(metrics['non_finite_env'][seed][index])}"
                    of_seed = f" (seed {self.config.seed + seed})" if self.config.seeds > 1 else ""
                    raise NonFiniteError(
                        f"The {SIGNALS[index]} became NaN or infinite{where} at iteration"
                        f" {self.iteration + 1}{of_seed}; training stopped and the state before it is kept."
                    )
        metrics.pop("non_finite_env")

    def run(self) -> Iterator[Metrics]:
        """Iterate until the step limit, or until every seed's search for budgets has ended where
        the configuration asks to stop then."""
        while not self.done:
            metrics = self.iterate()
            yield metrics
            if self.config.adversarial.stop_when_converged and bool(np.all(metrics["finished"])):
                return
