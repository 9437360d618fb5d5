"""The pseudo-lidar: how close the nearest target is in each of sixteen directions."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from acpo.tasks.navigation.robot import Body

BINS = 16


def lidar(body: Body, targets: jax.Array, reach: float) -> jax.Array:
    """[B, 16] closeness to targets [B, T, 2] as body [B] sees them (specification, section 3).

    Closeness falls linearly from 1 at the target to 0 at `reach`. A target fills its own bin and,
    in proportion to where it lies in that bin, its two neighbours; several combine by maximum.
    Bin 0 starts at the body's +x and bins go counter-clockwise.
    """
    offset = targets - body.position[:, None, :2]
    # The target's height is taken as 0 while the robot's own stays in; it matters when it tilts.
    height = -body.position[:, 2][:, None]
    x, y = (
        body.rotation[:, 0, axis, None] * offset[..., 0]
        + body.rotation[:, 1, axis, None] * offset[..., 1]
        + body.rotation[:, 2, axis, None] * height
        for axis in range(2)
    )
    closeness = jnp.maximum(0.0, reach - jnp.hypot(x, y)) / reach
    turn = jnp.mod(jnp.arctan2(y, x), 2 * jnp.pi) / (2 * jnp.pi / BINS)
    whole = jnp.floor(turn)
    part = turn - whole
    own = jnp.mod(whole.astype(jnp.int32), BINS)  # rounding can give bin 16

    bins = jnp.arange(BINS)
    away = jnp.mod(bins - own[..., None], BINS)
    share = jnp.where(
        away == 0,
        1.0,
        jnp.where(away == 1, part[..., None], jnp.where(away == BINS - 1, 1.0 - part[..., None], 0.0)),
    )
    return jnp.max(share * closeness[..., None], axis=1)
