"""ACPO's schedule: two opposed stages, budgets that follow them, and a projection (Algorithm 3).

The stages alternate: most reward under the budgets d, then least cost above the reward g. When
the pair (g, cost) no longer moves from cycle to cycle, a *convergence event* steers d towards the
desired budgets: if a cost is too high, d is lowered and a projection takes the policy there by the
shortest way; if there is room, d is raised. Each departure from the paper's text is a field of
`AdversarialConfig`; `spec` of the fields says which value is the paper's.

K costs; W iterations in the queues.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.config import AdversarialConfig, Config
from acpo.learning.networks import Policy
from acpo.problem import MAX_REWARD, MIN_COST, PROJECTION, Problem, max_reward, min_cost, projection, select
from acpo.schedules.base import Report, Schedule

SMALL = 1e-8


class AdversarialState(NamedTuple):
    desired: jax.Array
    """[K] d_des, less the margin"""
    start: jax.Array
    """[K] d⁰"""
    wanted: jax.Array
    """[K] what min-cost stages go for: on a line from d⁰ to d_des while there is patience, then d_des"""
    budgets: jax.Array
    """[K] d"""
    aim: jax.Array
    """[K] what min-cost stages lower d to: d_des at first, later where the events have steered d, so
    that a stage in between does not undo what the controller has learned"""
    reward_budget: jax.Array
    """[] g"""
    reward_noise: jax.Array
    """[] deviation of the returns measured in the max-reward stage"""
    stage: jax.Array
    """[] int"""
    stage_length: jax.Array
    """[] int: updates the present stage has made"""
    violated: jax.Array
    """[K] bool: costs over what is wanted of them when the min-cost stage began"""
    queue: jax.Array
    """[W, 1 + K] the last measured returns, oldest first"""
    queue_filled: jax.Array
    """[] int: rows of the queue measured since the last event"""
    stage_mean: jax.Array
    """[1 + K] mean of the returns measured of policies of the present stage"""
    stage_scatter: jax.Array
    """[1 + K] sum of their squared deviations from it"""
    reward_error: jax.Array
    """[] variance of g: what the noise of single measurements leaves in a stage's mean"""
    cycle: jax.Array
    """[1 + K] (g, mean cost after min-cost) of the last whole cycle"""
    cycle_error: jax.Array
    """[1 + K] variances of these"""
    cycles: jax.Array
    """[] int: whole cycles since the last event"""
    events: jax.Array
    """[] int"""
    finished: jax.Array
    """[] bool: the mean cost converged to the desired budget"""
    anchor: Policy
    """π_anchor: the policy at the last event"""


def init(config: Config, desired: jax.Array, policy: Policy) -> AdversarialState:
    costs = desired.shape[0]
    desired = desired * (1 - config.adversarial.margin)
    start = desired * config.adversarial.initial
    zero = jnp.zeros((), jnp.int32)
    return AdversarialState(
        desired=desired,
        start=start,
        wanted=desired,
        budgets=start,
        aim=desired,
        reward_budget=jnp.zeros(()),
        reward_noise=jnp.zeros(()),
        stage=jnp.full((), MAX_REWARD, jnp.int32),
        stage_length=zero,
        violated=jnp.ones(costs, bool),
        queue=jnp.zeros((config.adversarial.window, 1 + costs)),
        queue_filled=zero,
        stage_mean=jnp.zeros(1 + costs),
        stage_scatter=jnp.zeros(1 + costs),
        reward_error=jnp.zeros(()),
        cycle=jnp.zeros(1 + costs),
        cycle_error=jnp.zeros(1 + costs),
        cycles=zero,
        events=zero,
        finished=jnp.zeros((), bool),
        anchor=policy,
    )


def measure(state: AdversarialState, returns: jax.Array) -> AdversarialState:
    """Push the returns [1 + K] of the present policy into the queue, and into mean and scatter of its
    stage (Welford's way, which loses no digits)."""
    deviation = returns - state.stage_mean
    mean = state.stage_mean + deviation / jnp.maximum(state.stage_length, 1)
    return state._replace(
        queue=jnp.concatenate([state.queue[1:], returns[None]]),
        queue_filled=jnp.minimum(state.queue_filled + 1, state.queue.shape[0]),
        stage_mean=mean,
        stage_scatter=state.stage_scatter + deviation * (returns - mean),
    )


def enter(state: AdversarialState, stage: int) -> AdversarialState:
    """Begin a stage."""
    return state._replace(
        stage=jnp.full((), stage, jnp.int32),
        stage_length=jnp.zeros((), jnp.int32),
        stage_mean=jnp.zeros_like(state.stage_mean),
        stage_scatter=jnp.zeros_like(state.stage_scatter),
    )


def choose(condition: jax.Array, yes: AdversarialState, no: AdversarialState) -> AdversarialState:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def stage_variances(state: AdversarialState) -> jax.Array:
    """[1 + K] of single measurements within the stage that just ended."""
    return state.stage_scatter / jnp.maximum(state.stage_length, 1)


def end_max_reward(
    settings: AdversarialConfig, state: AdversarialState, settling: jax.Array
) -> AdversarialState:
    """g ← mean(D_R); go to min-cost, or skip it when nothing is over what is wanted or the training is
    in its last part."""
    means = state.stage_mean
    variance = stage_variances(state)[0]
    violated = means[1:] > state.wanted
    state = state._replace(
        reward_budget=means[0],
        reward_noise=jnp.sqrt(variance),
        reward_error=variance / jnp.maximum(state.stage_length, 1),
        violated=violated if settings.skip_satisfied else jnp.ones_like(violated),
    )
    to_min_cost = enter(state, MIN_COST)
    if not settings.skip_satisfied:
        return to_min_cost
    # A min-cost stage with nothing to do is over at once and leaves the budgets alone.
    return choose(jnp.any(violated) & ~settling, to_min_cost, end_cycle(state))


def at_least(state: AdversarialState, budgets: jax.Array) -> jax.Array:
    """`budgets` [K], or what is wanted while that is still above the desired ones."""
    return jnp.where(state.wanted > state.desired, jnp.maximum(budgets, state.wanted), budgets)


def end_min_cost(settings: AdversarialConfig, state: AdversarialState) -> AdversarialState:
    """d ← mean(D_C), kept from rising and from undercutting what is wanted; go to max-reward."""
    budgets = state.stage_mean[1:]
    if settings.monotone:
        budgets = jnp.minimum(state.budgets, jnp.maximum(budgets, at_least(state, state.aim)))
    return end_cycle(state._replace(budgets=budgets))


def end_cycle(state: AdversarialState) -> AdversarialState:
    """Remember what this cycle came to and begin the next with max-reward."""
    cycle = jnp.concatenate([state.reward_budget[None], state.stage_mean[1:]])
    cost_errors = stage_variances(state)[1:] / jnp.maximum(state.stage_length, 1)
    error = jnp.concatenate([state.reward_error[None], cost_errors])
    ended = state._replace(cycle=cycle, cycle_error=error, cycles=state.cycles + 1)
    return enter(ended, MAX_REWARD)


def tolerances(settings: AdversarialConfig, values: jax.Array, desired: jax.Array) -> jax.Array:
    """[1 + K] changes of `values` [1 + K] that count as none: so much of max(|value|, d_des)."""
    floor = jnp.concatenate([jnp.zeros(1), desired])
    return settings.tolerance * (jnp.maximum(jnp.abs(values), floor) + SMALL)


def cycle_settled(settings: AdversarialConfig, now: AdversarialState, before: AdversarialState) -> jax.Array:
    """[] whether no value moved from one cycle to the next by more than the tolerance, or than what
    the noise of measurements alone would make of values that stand still."""
    noise = settings.noise * jnp.sqrt(now.cycle_error + before.cycle_error)
    allowed = jnp.maximum(tolerances(settings, now.cycle, now.desired), noise)
    return jnp.all(jnp.abs(now.cycle - before.cycle) <= allowed)


def queue_settled(settings: AdversarialConfig, state: AdversarialState) -> jax.Array:
    """[] Algorithm 3's words: both queues are full and their spread is within the tolerance."""
    full = state.queue_filled >= state.queue.shape[0]
    highest, lowest = state.queue.max(axis=0), state.queue.min(axis=0)
    return full & jnp.all(highest - lowest <= tolerances(settings, highest, state.desired))


def queue_means(state: AdversarialState) -> tuple[jax.Array, jax.Array]:
    """[1 + K] means of the part of the queues measured since the last event, and their standard errors."""
    size = state.queue.shape[0]
    recent = (jnp.arange(size) >= size - state.queue_filled)[:, None]
    count = jnp.maximum(state.queue_filled, 1)
    means = jnp.sum(jnp.where(recent, state.queue, 0.0), axis=0) / count
    scatter = jnp.sum(jnp.where(recent, (state.queue - means) ** 2, 0.0), axis=0)
    return means, jnp.sqrt(scatter) / count


def converge(settings: AdversarialConfig, state: AdversarialState, policy: Policy) -> AdversarialState:
    """A convergence event: done, or a step of the budgets towards the desired ones."""
    means, errors = queue_means(state)
    error = state.desired - means[1:]
    noise = settings.noise * errors[1:]
    # Budgets that follow noise never stand still: the square of a deviation, less that of its noise,
    # over itself is the share to believe.
    certain = error * jnp.maximum(1 - (noise / (jnp.abs(error) + SMALL)) ** 2, 0.0)
    nearly = settings.finish * state.desired + SMALL
    near = jnp.abs(error) <= nearly
    over = (error < 0) & ~near
    # A cost that stays under a budget already as loose as it gets does not bind: nothing to steer.
    highest = settings.raised * state.desired
    under = (error > 0) & ~near & (state.budgets < highest)
    too_high = jnp.any(over)
    done = ~too_high & ~jnp.any(under)

    gains = jnp.where(over, settings.gain, jnp.where(under & ~too_high, settings.gain_under, 0.0))
    moved = state.budgets + gains * certain
    lowest = at_least(state, settings.lowered * state.desired)
    budgets = jnp.clip(moved, jnp.minimum(lowest, state.budgets), jnp.maximum(highest, state.budgets))
    arrived = state.budgets <= state.aim * (1 + settings.tolerance)
    aim = jnp.where(arrived, budgets, jnp.minimum(state.aim, budgets))
    state = state._replace(
        events=state.events + 1,
        cycles=jnp.zeros_like(state.cycles),
        queue_filled=jnp.zeros_like(state.queue_filled),
        finished=done,
        budgets=jnp.where(done, state.budgets, budgets),
        aim=jnp.where(done, state.aim, aim),
    )
    project = enter(state._replace(anchor=policy), PROJECTION)
    # The moved budgets are enough for what may be noise: a projection earns no reward.
    surely = jnp.any(error < -jnp.maximum(nearly, noise))
    return choose(surely, project, enter(state, MAX_REWARD))


def alternate(
    settings: AdversarialConfig, state: AdversarialState, returns: jax.Array, settling: jax.Array
) -> AdversarialState:
    """Leave a stage whose length, or for a projection whose aim, is reached."""
    after_max = choose(
        state.stage_length >= settings.max_reward, end_max_reward(settings, state, settling), state
    )
    enough = state.stage_length >= settings.min_cost
    if settings.skip_satisfied:
        # Nothing is left to do, and what is below that is no use.
        enough |= jnp.all(returns[1:] <= state.wanted) & (state.stage_length > 0)
    after_min = choose(enough, end_min_cost(settings, state), state)
    arrived = jnp.all(returns[1:] <= state.budgets) & (state.stage_length > 0)
    left = arrived | (state.stage_length >= settings.projection)
    after_projection = choose(left, enter(state, MAX_REWARD), state)
    stages = (after_max, after_min, after_projection)
    return jax.tree.map(lambda *leaves: jnp.stack(leaves)[state.stage], *stages)


def update(
    config: Config, state: AdversarialState, returns: jax.Array, policy: Policy, iteration: jax.Array
) -> tuple[AdversarialState, Problem]:
    """Algorithm 3 for one iteration, then the problem of the stage it chose."""
    settings = config.adversarial
    if settings.initial_measured:
        start = jnp.where(iteration == 0, jnp.maximum(state.start, returns[1:]), state.start)
        state = state._replace(start=start, budgets=jnp.where(iteration == 0, start, state.budgets))
    share = iteration / config.iterations
    wanted = line(state, share / settings.patience) if settings.patience else state.desired
    state = state._replace(wanted=wanted)
    measured = measure(state, returns)
    settling = iteration >= (1 - settings.settle) * config.iterations
    if settings.convergence == "cycle":
        before = measured
        alternated = alternate(settings, measured, returns, settling)
        ended = alternated.cycles > before.cycles
        converged = (alternated.cycles > 1) & cycle_settled(settings, alternated, before)
        event = ended & (converged | settling)
        after = choose(event, converge(settings, alternated, policy), alternated)
    else:
        event = queue_settled(settings, measured) & (measured.stage != PROJECTION)
        alternated = alternate(settings, measured, returns, settling)
        after = choose(event, converge(settings, measured, policy), alternated)
    exploring = iteration <= settings.explore
    # While exploring no stage is counted: the first max-reward stage starts with the update of
    # iteration n_e, whose measurement is still of a policy made before it.
    state = choose(exploring, enter(measured, MAX_REWARD), after)
    if settings.deadline:
        state = press(state, line(state, share / settings.deadline))
    problem = select(
        state.stage,
        (
            max_reward(state.budgets),
            min_cost(
                state.violated,
                state.reward_budget - settings.reward_slack * state.reward_noise,
                guards(settings, state),
                state.reward_noise,
            ),
            projection(state.budgets),
        ),
    )
    return state._replace(stage_length=state.stage_length + 1), problem


def line(state: AdversarialState, share: jax.Array) -> jax.Array:
    """[K] on the line from d⁰ to d_des, of which the `share` has passed."""
    return state.start + jnp.clip(share, 0.0, 1.0) * (state.desired - state.start)


def press(state: AdversarialState, highest: jax.Array) -> AdversarialState:
    """d at most `highest` until an event steers it."""
    return state._replace(
        budgets=jnp.where(state.events > 0, state.budgets, jnp.minimum(state.budgets, highest))
    )


def guards(settings: AdversarialConfig, state: AdversarialState) -> jax.Array:
    """[K] limits that keep the min-cost stage from trading a satisfied cost for a violated one."""
    if not settings.guard_satisfied:
        return jnp.full_like(state.desired, jnp.inf)
    return jnp.where(state.violated, jnp.inf, state.wanted)


def report(state: AdversarialState) -> Report:
    return Report(state.budgets, state.reward_budget, state.stage, state.events, state.finished)


SCHEDULE = Schedule(init, update, report, anchor=lambda state: state.anchor)
