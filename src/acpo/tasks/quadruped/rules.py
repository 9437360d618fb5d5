"""One control step of the task as pure functions: what the motors get, what the step was worth.

B worlds. The same functions serve simulators on the host (`native`) and in the graph (`device`):

    targets  ->  physics step  ->  judge  ->  physics reset of ended worlds  ->  first_observation

Every random number comes from `Episodes.key`, so a saved state goes on bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from acpo.physics.state import Array, PhysicsState
from acpo.tasks.quadruped import commands, gait, resets, rewards
from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.costs import raw_costs
from acpo.tasks.quadruped.observation import observe
from acpo.tasks.quadruped.reading import Reading, Robot, describe, read


class Episodes(NamedTuple):
    """What the task remembers of B episodes between steps."""

    key: jax.Array
    """One random key for the whole batch."""
    elapsed: jax.Array
    """[B] int32 control steps on the episode clock"""
    phase_start: jax.Array
    """[B] the gait clock at elapsed 0, in cycles"""
    command: jax.Array
    """[B, 3]"""
    action: jax.Array
    """[B, 12] the last one, clipped and unscaled; zero at the start"""
    late: jax.Array
    """[B] bool: whether this episode's actions reach the motors one step late"""


class Drive(NamedTuple):
    """What a step does to the simulated robots."""

    action: jax.Array
    """[B, 12] clipped"""
    ctrl: jax.Array
    """[B, 12] joint targets, rad"""
    push: jax.Array
    """[B, 2] added to the planar velocity before the step, m/s"""


class Outcome(NamedTuple):
    """What a step led to; ended worlds have a place to start again."""

    episodes: Episodes
    observation: jax.Array
    """[B, 72] of the state the step led to, before any reset"""
    reward: jax.Array
    """[B] for the learner"""
    costs: jax.Array
    """[B, 8] scaled"""
    terminated: jax.Array
    truncated: jax.Array
    failed: jax.Array
    """[B] bool each"""
    qpos: jax.Array
    """[B, 19] where ended worlds start again"""
    qvel: jax.Array
    """[B, 18]"""


@dataclass(frozen=True)
class Rules:
    """The task's functions for one configuration; hashable, so that they can key a compilation."""

    config: Go1Config
    robot: Robot

    @classmethod
    def of(cls, config: Go1Config) -> Rules:
        return cls(config, describe(config))

    def begin(self, key: jax.Array, count: int) -> tuple[Episodes, jax.Array, jax.Array]:
        """Fresh episodes with qpos [count, 19] and qvel [count, 18], at random points of their clocks."""
        next_key, clock_key, fresh_key = jax.random.split(key, 3)
        elapsed = jnp.zeros(count, jnp.int32)
        if self.config.random_clocks:
            elapsed = jax.random.randint(clock_key, (count,), 0, self.config.episode_steps)
        return self._fresh(next_key, _draws(fresh_key, count), elapsed)

    def targets(self, episodes: Episodes, actions: jax.Array) -> Drive:
        """Clip actions [B, 12] and turn them into joint targets, q_default + 0.25 a (spec 2)."""
        config = self.config
        action = jnp.clip(actions.astype(jnp.float32), -config.action_clip, config.action_clip)
        executed = action
        if config.random_delay:
            executed = jnp.where(episodes.late[:, None], episodes.action, action)
        push = jnp.zeros((action.shape[0], 2))
        if config.push_steps:
            due = (episodes.elapsed > 0) & (episodes.elapsed % config.push_steps == 0)
            speed = config.push_velocity
            drawn = jax.random.uniform(
                jax.random.fold_in(episodes.key, 1), push.shape, minval=-speed, maxval=speed
            )
            push = jnp.where(due[:, None], drawn, 0.0)
        return Drive(action, jnp.asarray(config.default_pose) + config.action_scale * executed, push)

    def judge(
        self, episodes: Episodes, physics: PhysicsState, action: jax.Array, broken: jax.Array
    ) -> Outcome:
        """Value the state that `action` [B, 12] led to; `broken` [B] are worlds the simulator lost."""
        config = self.config
        next_key, noise_key, fresh_key = jax.random.split(episodes.key, 3)
        # One draw serves a new command and a new episode, which no world has in the same step.
        uniform = _draws(fresh_key, action.shape[0])
        reading = read(self.robot, physics)
        failed = broken | _exploded(config, physics)
        elapsed = episodes.elapsed + 1
        phases = gait.clock(config, episodes.phase_start, elapsed)

        # The command the policy acted on is the one it is judged by; a new one follows.
        terms = rewards.terms(config, reading, phases, episodes.command)
        reward = jnp.where(failed, 0.0, rewards.total(config, terms))
        costs = config.cost_scale * raw_costs(config, self.robot, reading, action, episodes.action)

        terminated = failed | fallen(config, reading)
        truncated = (elapsed >= config.episode_steps) & ~terminated
        renewed = (elapsed % config.command_steps == 0) & (elapsed < config.episode_steps)
        command = choose(renewed, commands.commands(config, uniform[:, : commands.DRAWS]), episodes.command)
        observation = observe(
            config,
            reading,
            action=action,
            last_action=episodes.action,
            phases=phases,
            command=command,
            key=noise_key,
        )

        fresh, qpos, qvel = self._fresh(next_key, uniform, jnp.zeros_like(elapsed))
        ended = terminated | truncated
        going_on = Episodes(next_key, elapsed, episodes.phase_start, command, action, episodes.late)
        merged = [choose(ended, new, old) for new, old in zip(fresh[1:], going_on[1:], strict=True)]
        return Outcome(
            Episodes(next_key, *merged),
            choose(failed, jnp.zeros_like(observation), observation),
            rewards.learner_reward(config, reward),
            choose(failed, jnp.zeros_like(costs), costs),
            terminated,
            truncated,
            failed,
            qpos,
            qvel,
        )

    def first_observation(self, episodes: Episodes, physics: PhysicsState) -> jax.Array:
        """[B, 72] at the start of an episode, where both remembered actions are zero."""
        config = self.config
        phases = gait.clock(config, episodes.phase_start, episodes.elapsed)
        zero = jnp.zeros_like(episodes.action)
        key = jax.random.fold_in(episodes.key, 2)
        reading = read(self.robot, physics)
        return observe(
            config,
            reading,
            action=zero,
            last_action=zero,
            phases=phases,
            command=episodes.command,
            key=key,
        )

    def schedule(self, episodes: Episodes) -> jax.Array:
        """[B, 4] the desired contact that the last step was judged by."""
        phases = gait.clock(self.config, episodes.phase_start, episodes.elapsed)
        return gait.schedule(self.config, phases, episodes.command)

    def _fresh(
        self, next_key: jax.Array, uniform: jax.Array, elapsed: jax.Array
    ) -> tuple[Episodes, jax.Array, jax.Array]:
        config, count = self.config, elapsed.shape[0]
        for_command, for_gait, for_start = jnp.split(uniform, [commands.DRAWS, commands.DRAWS + 2], axis=-1)
        phase = for_gait[:, 0] if config.random_phase else jnp.zeros(count)
        episodes = Episodes(
            key=next_key,
            elapsed=elapsed,
            phase_start=gait.start_at(config, phase, elapsed),
            command=commands.commands(config, for_command),
            action=jnp.zeros((count, 12)),
            late=(for_gait[:, 1] < 0.5) & config.random_delay,
        )
        return episodes, *resets.starts(config, self.robot, for_start)


def _draws(key: jax.Array, count: int) -> jax.Array:
    """Uniform numbers in [0, 1) for a command, the gait clock, the delay and a starting pose.

    Drawn in one call: each costs more to compile than to run.
    """
    return jax.random.uniform(key, (count, commands.DRAWS + 2 + resets.DRAWS))


def fallen(config: Go1Config, reading: Reading) -> jax.Array:
    """[B] bool: trunk on the floor, tilted past 70 degrees or lower than 0.12 m (spec 7).

    Looser than the orientation and height costs, so that those can be violated and learned from.
    """
    tilted = reading.up[:, 2] < jnp.cos(config.tilt_limit)
    low = reading.height < config.height_floor
    if not config.trunk_touch_ends:
        return tilted | low
    return tilted | low | reading.link_touch[:, 0]


def reported_return(config: Go1Config, returns: Array, lengths: Array) -> Array:
    """EpRet, the sum of R over an episode by 1000, from the learner's return and the episode's length.

    The learner's reward is affine in R, so the paper's number needs no second signal; steps missing
    after a fall count 0 in both.
    """
    return (returns / config.reward_scale - config.reward_offset * lengths) / config.episode_steps


def choose(mask: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    """Rows of `new` where `mask` [B], else of `old`; NaN in the row not chosen does no harm."""
    return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _exploded(config: Go1Config, physics: PhysicsState) -> jax.Array:
    """[B] bool: something is non-finite, or faster than any Go1 has moved."""
    finite = [jnp.isfinite(jnp.asarray(field)).all(axis=-1) for field in physics]
    fast = jnp.abs(jnp.asarray(physics.qvel)).max(axis=-1) > config.speed_limit
    return ~(finite[0] & finite[1] & finite[2]) | fast
