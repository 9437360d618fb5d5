"""The first-order engine: clipped surrogate, minibatches, Adam, a stop on KL.

It follows a weighted sum of the signals' advantages. Where the weights come from (barriers,
multipliers) is the calling solver's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from acpo.config import Config
from acpo.learning.batch import Batch
from acpo.learning.networks import Critics, Policy
from acpo.solvers.base import Metrics

ADAM = optax.scale_by_adam()


class PPOState(NamedTuple):
    policy_moments: optax.OptState
    critic_moments: optax.OptState


class Weights(NamedTuple):
    """The direction an update follows."""

    signals: jax.Array
    """[1 + K] weight of each signal's advantage, to be maximised"""
    anchor: jax.Array
    """[] weight of KL(π ‖ anchor), to be minimised"""
    entropy: jax.Array
    """[] share of the configured entropy bonus"""


def weights(objective: jax.Array, anchor: jax.Array, penalties: jax.Array, signs: jax.Array) -> Weights:
    """(objective + Σ λ·limit surrogate) / (1 + Σ λ), the anchor divided alike.

    The entropy bonus is not: it sets how much is explored beside a direction of unit size, and a
    large multiplier must not end the search for a way to keep its limit.

    objective, penalties λ and the signs in which signals widen their slack: [1 + K].
    """
    total = 1.0 + penalties.sum()
    return Weights((objective + penalties * signs) / total, anchor / total, jnp.ones(()))


Weigh = Callable[[jax.Array], Weights]
"""Predicted changes of the returns [1 + K], per episode, over the whole batch → weights."""
Barrier = Callable[[jax.Array], jax.Array]
"""Predicted changes of the returns [1 + K] on one minibatch → a term to be maximised."""


def init(policy: Policy, critics: Critics) -> PPOState:
    return PPOState(ADAM.init(policy), ADAM.init(critics))


def critic_unit(config: Config, targets: jax.Array) -> jax.Array:
    """[1 + K] in which the squared errors of `targets` [N, 1 + K] are weighed against weight decay."""
    if config.critic.error_unit == "absolute":
        return jnp.ones(targets.shape[1])
    return jnp.var(targets, axis=0) + 1e-8


def critic_loss(
    critics: Critics, observations: jax.Array, targets: jax.Array, unit: jax.Array, decay: float
) -> jax.Array:
    """Σ over the 1 + K critics of mean squared error / unit + decay · Σθ²."""
    errors = critics(observations) - targets
    weights = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(critics))
    return jnp.sum(jnp.mean(errors**2, axis=0) / unit) + decay * weights


def clip_norm(gradient: Policy | Critics, limit: float) -> Policy | Critics:
    norm = optax.tree.norm(gradient)
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, limit / (norm + 1e-6)), gradient)


def critic_step(
    critics: Critics,
    moments: optax.OptState,
    observations: jax.Array,
    targets: jax.Array,
    unit: jax.Array,
    config: Config,
) -> tuple[Critics, optax.OptState, jax.Array, jax.Array]:
    """One Adam step of every critic; also the loss and whether the gradient was finite."""
    loss, gradient = jax.value_and_grad(critic_loss)(
        critics, observations, targets, unit, config.critic.weight_decay
    )
    finite = jnp.isfinite(optax.tree.norm(gradient))
    gradient = jax.vmap(lambda network: clip_norm(network, config.ppo.max_grad_norm))(gradient)
    step, moments = ADAM.update(gradient, moments)
    critics = jax.tree.map(lambda leaf, s: leaf - config.critic.learning_rate * s, critics, step)
    return critics, moments, loss, finite


def clipped_surrogate(ratio: jax.Array, advantage: jax.Array, clip: float) -> jax.Array:
    """[] mean of min(r·A, clip(r)·A)"""
    return jnp.mean(jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage))


def policy_loss(
    policy: Policy, sample: Batch, weights: Weights, barrier: Barrier | None, config: Config
) -> jax.Array:
    distribution = policy.distribution(sample.observations)
    ratio = jnp.exp(distribution.log_prob(sample.actions) - sample.log_probs)
    objective = clipped_surrogate(ratio, sample.advantages @ weights.signals, config.ppo.clip)
    if config.ppo.entropy:
        objective += config.ppo.entropy * weights.entropy * jnp.mean(distribution.entropy())
    if sample.anchor is not None:
        objective -= weights.anchor * jnp.mean(distribution.kl(sample.anchor))  # type: ignore[arg-type]
    if barrier is not None:
        objective += barrier(sample.surrogates(ratio))
    return -objective


def exploring(progress: jax.Array) -> jax.Array:
    """[] share of the entropy bonus: it falls linearly to zero over the first two thirds of training."""
    return jnp.maximum(1 - 1.5 * progress, 0.0)


def shuffle(key: jax.Array, count: int, size: int) -> jax.Array:
    """[M, size] indices of `count` samples in random order, cut into whole minibatches.

    Sorting random words once is half the work of `jax.random.permutation`, whose second round
    guards against ties that do not matter here. A minibatch of everything needs no order.
    """
    if size == count:
        return jnp.arange(count)[None]
    return jnp.argsort(jax.random.bits(key, (count,)))[: count // size * size].reshape(-1, size)


def minibatches(key: jax.Array, batch: Batch, size: int) -> Batch:
    """The samples of `batch` in a fresh order, cut into [M, size, …]; the rest is left out."""
    count = batch.observations.shape[0]
    order = shuffle(key, count, size)
    shared = {"returns", "unit"}

    def take(leaf: jax.Array) -> jax.Array:
        return leaf[None] if size == count else leaf[order]

    cut: dict[str, Any] = {
        name: jnp.broadcast_to(value, (order.shape[0], *value.shape))
        if name in shared
        else jax.tree.map(take, value)
        for name, value in batch._asdict().items()
    }
    return Batch(**cut)


def compare(policy: Policy, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """[] KL from the policy that acted and [1 + K] surrogates, over the whole batch."""
    distribution = policy.distribution(batch.observations)
    ratio = jnp.exp(distribution.log_prob(batch.actions) - batch.log_probs)
    return jnp.mean(batch.old.kl(distribution)), batch.surrogates(ratio)  # type: ignore[arg-type]


def shorten(
    old: Policy, new: Policy, kl: jax.Array, surrogates: jax.Array, batch: Batch, config: Config
) -> tuple[Policy, jax.Array, jax.Array]:
    """The update old → new cut to `ppo.overshoot` times the KL bound, with its KL and surrogates.

    KL is looked at once a pass, and Adam knows the size of gradients from earlier updates: where a
    stage or a multiplier makes them ten times larger, a pass goes ten times too far.
    """
    bound = config.ppo.overshoot * config.ppo.kl
    if not bound:
        return new, kl, surrogates

    def back(carry: tuple[Policy, jax.Array, jax.Array]) -> tuple[Policy, jax.Array, jax.Array]:
        policy, kl, _ = carry
        # KL grows with the square of a short step; a long one needs several goes.
        share = 0.95 * jnp.sqrt(bound / kl)
        policy = jax.tree.map(lambda start, end: start + share * (end - start), old, policy)
        return policy, *compare(policy, batch)

    return jax.lax.while_loop(lambda carry: carry[1] > bound, back, (new, kl, surrogates))


class _Pass(NamedTuple):
    """What goes from one pass to the next."""

    done: jax.Array
    """[] int: passes made"""
    key: jax.Array
    policy: Policy
    critics: Critics
    moments: PPOState
    surrogates: jax.Array
    weights: Weights
    kl: jax.Array
    losses: jax.Array
    """[2] policy, critics: means over the last pass"""
    finite: jax.Array


def optimise(
    config: Config,
    state: PPOState,
    policy: Policy,
    critics: Critics,
    batch: Batch,
    key: jax.Array,
    progress: jax.Array,
    weigh: Weigh,
    barrier: Barrier | None = None,
) -> tuple[Policy, Critics, PPOState, Weights, Metrics]:
    """Passes over the batch until their number or the KL bound is reached.

    Weights are refreshed once a pass from the surrogates of the whole batch; the forward
    evaluation that measures KL gives them too.
    """
    settings = config.ppo
    unit = critic_unit(config, batch.targets)
    learning_rate = settings.learning_rate * (1 - (1 - settings.final_learning_rate) * progress)

    def gradient_step(
        carry: tuple[Policy, Critics, PPOState], sample: Batch, weights: Weights
    ) -> tuple[tuple[Policy, Critics, PPOState], tuple[jax.Array, jax.Array]]:
        policy, critics, moments = carry
        loss, gradient = jax.value_and_grad(policy_loss)(policy, sample, weights, barrier, config)
        finite = jnp.isfinite(optax.tree.norm(gradient))
        step, policy_moments = ADAM.update(clip_norm(gradient, settings.max_grad_norm), moments[0])
        policy = jax.tree.map(lambda leaf, s: leaf - learning_rate * s, policy, step)
        critics, critic_moments, value_loss, critic_finite = critic_step(
            critics, moments[1], sample.observations, sample.targets, unit, config
        )
        losses = jnp.stack([loss, value_loss])
        return (policy, critics, PPOState(policy_moments, critic_moments)), (losses, finite & critic_finite)

    def one_pass(carry: _Pass) -> _Pass:
        weights = weigh(carry.surrogates)
        weights = weights._replace(entropy=exploring(progress))
        key, shuffle_key = jax.random.split(carry.key)
        (policy, critics, moments), (losses, finite) = jax.lax.scan(
            lambda c, sample: gradient_step(c, sample, weights),
            (carry.policy, carry.critics, carry.moments),
            minibatches(shuffle_key, batch, settings.minibatch),
        )
        kl, surrogates = compare(policy, batch)
        return _Pass(
            done=carry.done + 1,
            key=key,
            policy=policy,
            critics=critics,
            moments=moments,
            surrogates=surrogates,
            weights=weights,
            kl=kl,
            losses=losses.mean(axis=0),
            finite=carry.finite & jnp.all(finite),
        )

    # Advantages are centred, so the surrogates of the policy that acted are zero.
    start = jnp.zeros(batch.advantages.shape[1])
    last = jax.lax.while_loop(
        lambda carry: (carry.done < settings.passes) & (carry.kl <= settings.kl),
        one_pass,
        _Pass(
            done=jnp.zeros((), jnp.int32),
            key=key,
            policy=policy,
            critics=critics,
            moments=state,
            surrogates=start,
            weights=weigh(start),
            kl=jnp.zeros(()),
            losses=jnp.zeros(2),
            finite=jnp.ones((), bool),
        ),
    )
    new, kl, surrogates = shorten(policy, last.policy, last.kl, last.surrogates, batch, config)
    metrics = {
        "passes": last.done,
        "kl": kl,
        "policy_loss": last.losses[0],
        "critic_loss": last.losses[1],
        "learning_rate": learning_rate,
        "surrogates": surrogates,
        "gradient_finite": last.finite,
    }
    return new, last.critics, last.moments, last.weights, metrics


def fit_critics(
    config: Config, critics: Critics, moments: optax.OptState, batch: Batch, key: jax.Array
) -> tuple[Critics, optax.OptState, jax.Array, jax.Array]:
    """Critics alone, for solvers that do not train the policy by minibatches."""
    unit = critic_unit(config, batch.targets)

    def step(
        carry: tuple[Critics, optax.OptState], sample: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[Critics, optax.OptState], tuple[jax.Array, jax.Array]]:
        critics, moments, loss, finite = critic_step(*carry, *sample, unit, config)
        return (critics, moments), (loss, finite)

    def one_pass(
        carry: tuple[Critics, optax.OptState], key: jax.Array
    ) -> tuple[tuple[Critics, optax.OptState], tuple[jax.Array, jax.Array]]:
        order = shuffle(key, batch.observations.shape[0], config.critic.minibatch)
        return jax.lax.scan(step, carry, (batch.observations[order], batch.targets[order]))

    keys = jax.random.split(key, config.critic.passes)
    (critics, moments), (losses, finite) = jax.lax.scan(one_pass, (critics, moments), keys)
    return critics, moments, losses[-1].mean(), jnp.all(finite)
