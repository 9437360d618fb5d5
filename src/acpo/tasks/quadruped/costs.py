"""The eight costs, each a smooth indicator of leaving an allowed interval (spec 6).

B worlds. Every function gives the unscaled cost [B] in [0, 1] (with `aggregate="sum"`, up to the
number of components); `costs` stacks them and applies `cost_scale`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import erfc

from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.reading import Reading, Robot

COSTS = (
    "ang_vel_xy",
    "lin_vel_z",
    "orientation",
    "torso_height",
    "joint_pos",
    "joint_vel",
    "joint_torque",
    "action_rate",
)


def barrier(value: jax.Array, bound: jax.Array | float, sigma: jax.Array | float) -> jax.Array:
    """B(c; b, sigma) = (1 + erf((c - b) / sigma)) / 2, the paper's smooth step at b.

    Written with erfc, which keeps its relative precision far below the bound.
    """
    return 0.5 * erfc((bound - value) / sigma)


def two_sided(
    value: jax.Array,
    low: jax.Array | float,
    high: jax.Array | float,
    smoothing: float,
) -> jax.Array:
    """Sum of the barriers at both ends of [low, high], of width `smoothing` times its half-width.

    The paper gives l and r without saying how they combine; this is 0 inside and 1 outside both.
    """
    sigma = smoothing * 0.5 * (jnp.asarray(high) - jnp.asarray(low))
    return barrier(value, high, sigma) + barrier(-value, -jnp.asarray(low), sigma)


def aggregate(config: Go1Config, components: jax.Array) -> jax.Array:
    """[B] from [B, n] violations of one vector: by default the fraction violating."""
    match config.aggregate:
        case "mean":
            return components.mean(axis=-1)
        case "max":
            return components.max(axis=-1)
        case "sum":
            return components.sum(axis=-1)


def ang_vel_xy(config: Go1Config, angular_velocity: jax.Array) -> jax.Array:
    """[B] roll and pitch rate within ±1 rad/s; body frame [B, 3].

    Signed components, because the paper's lower bound of -1 can mean nothing for a norm.
    """
    limit, smoothing = config.ang_vel_xy_limit, config.cost_smoothing
    rates = angular_velocity[:, :2]
    if config.ang_vel == "norm":
        return barrier(jnp.linalg.norm(rates, axis=-1), limit, smoothing * limit)
    return aggregate(config, two_sided(rates, -limit, limit, smoothing))


def lin_vel_z(config: Go1Config, linear_velocity: jax.Array) -> jax.Array:
    """[B] vertical velocity within ±0.4 m/s; body frame [B, 3]."""
    limit = config.lin_vel_z_limit
    return two_sided(linear_velocity[:, 2], -limit, limit, config.cost_smoothing)


def orientation(config: Go1Config, up: jax.Array) -> jax.Array:
    """[B] horizontal part of gravity below 7 m/s², from the up direction in the body [B, 3].

    The paper's lower bound 0 is dropped: a norm is never below it, and a barrier there would
    charge one half on every level step.
    """
    horizontal = config.gravity_norm * jnp.linalg.norm(up[:, :2], axis=-1)
    return barrier(horizontal, config.orientation_bound, config.cost_smoothing * config.orientation_bound)


def torso_height(config: Go1Config, height: jax.Array) -> jax.Array:
    """[B] height of the trunk within 0.2 to 0.5 m; [B]."""
    return two_sided(height, *config.height_limits, config.cost_smoothing)


def joint_pos(config: Go1Config, robot: Robot, position: jax.Array) -> jax.Array:
    """[B] joints within 0.9 of their half range around its middle; [B, 12].

    Nine tenths of each limit taken apart would be looser than the joint itself at the calf's end.
    """
    low, high = jnp.asarray(robot.joint_low), jnp.asarray(robot.joint_high)
    middle, half = (low + high) / 2, config.soft_position_fraction * (high - low) / 2
    return aggregate(config, two_sided(position, middle - half, middle + half, config.cost_smoothing))


def joint_vel(config: Go1Config, velocity: jax.Array) -> jax.Array:
    """[B] joint velocities within 0.9 of the motors' limits; [B, 12]."""
    limit = config.soft_velocity_fraction * jnp.tile(jnp.asarray(config.velocity_limits), 4)
    return aggregate(config, two_sided(velocity, -limit, limit, config.cost_smoothing))


def joint_torque(config: Go1Config, robot: Robot, torque: jax.Array) -> jax.Array:
    """[B] torques, as the motors gave them, within 0.7 of the motors' limits; [B, 12]."""
    limit = config.soft_torque_fraction * jnp.asarray(robot.torque_limit)
    return aggregate(config, two_sided(torque, -limit, limit, config.cost_smoothing))


def action_rate(config: Go1Config, action: jax.Array, last_action: jax.Array) -> jax.Array:
    """[B] rate of the joint targets within ±10 rad/s; clipped actions [B, 12].

    The paper's action is a desired joint position, so the rate is of the scaled action; bare
    actions under the same bound would forbid the swing of a walk.
    """
    unit = config.action_scale if config.action_rate_units == "scaled" else 1.0
    rate = unit * (action - last_action) / config.control_step
    limit = config.action_rate_limit
    return aggregate(config, two_sided(rate, -limit, limit, config.cost_smoothing))


def raw_costs(
    config: Go1Config, robot: Robot, reading: Reading, action: jax.Array, last_action: jax.Array
) -> jax.Array:
    """[B, 8] violations in the order of `COSTS`, before `cost_scale`."""
    return jnp.stack(
        [
            ang_vel_xy(config, reading.angular_velocity),
            lin_vel_z(config, reading.linear_velocity),
            orientation(config, reading.up),
            torso_height(config, reading.height),
            joint_pos(config, robot, reading.joint_position),
            joint_vel(config, reading.joint_velocity),
            joint_torque(config, robot, reading.torque),
            action_rate(config, action, last_action),
        ],
        axis=-1,
    )
