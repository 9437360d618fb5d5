"""Free bodies at rest cost nothing: they leave the physics until something could reach them.

A box lying on the floor keeps four contacts of forty constraint rows busy to stay where it is
(navigation specification, section 10: 177 of 208 µs of a PointGoal1 step). MuJoCo's own sleep
does away with that, but whether a body sleeps is not part of MuJoCo's saved state, so a run could
not resume exactly. Here the decision is made anew at each step from positions and velocities
alone, for each world and body, by switching collision bits of that world's copy of the model.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from acpo.physics.native import NativePhysics
from acpo.physics.state import PhysicsState

REST_SPEED = 1e-6
"""Largest velocity component (m/s, rad/s) of a body at rest."""
REST_HEIGHT = 1e-7
"""How near a body's height is to where it settles, in m: a body that leans, or lies on another,
is not at rest for this purpose."""
SLACK = 0.02
"""Extra distance in m that covers the acceleration within one step."""


class RestingPhysics(NativePhysics):
    """`NativePhysics` for one pusher and V equal free bodies that lie on the floor most of the time.

    The pusher's first two positions and velocities are its world x and y; the bodies' free joints
    come last in the model. A resting body that neither the pusher nor a moving body can reach
    within the step is held exactly where it is, with velocity zero; the others are simulated.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        num_worlds: int,
        substeps: int,
        *,
        pusher: str,
        bodies: Sequence[str],
        threads: int | None = None,
        park: bool = True,
    ) -> None:
        super().__init__(model, num_worlds, substeps, threads)
        self._park = park and bool(bodies)
        if not self._park:
            return
        count = len(bodies)
        self._first_qpos, self._first_qvel = model.nq - 7 * count, model.nv - 6 * count
        body_ids = [model.body(name).id for name in bodies]
        geom_ids = [int(model.body_geomadr[i]) for i in body_ids]
        self._bits = [
            (self.batch.expand(field), ids, getattr(model, field)[ids].copy())
            for field, ids in (
                ("geom_contype", geom_ids),
                ("geom_conaffinity", geom_ids),
                ("body_contype", body_ids),
                ("body_conaffinity", body_ids),
            )
        ]
        self._step_time = model.opt.timestep * substeps
        self._height = settled_height(model, bodies)
        self._radius = float(model.geom_rbound[geom_ids[0]])
        self._pusher_radius = bounding_radius(model, pusher)
        self.parked = np.zeros((num_worlds, count), bool)
        """[B, V] the bodies that the last step left out."""

    def step(self, ctrl: np.ndarray) -> tuple[PhysicsState, np.ndarray]:
        if not self._park:
            return super().step(ctrl)
        bodies = self._qpos[:, self._first_qpos :].reshape(self.num_worlds, -1, 7)
        velocities = self._qvel[:, self._first_qvel :].reshape(self.num_worlds, -1, 6)
        parked = self._can_rest(bodies, velocities)
        if (parked != self.parked).any():
            self.parked = parked
            for field, ids, awake in self._bits:
                field[:, ids] = np.where(parked, 0, awake)
        held = bodies[parked]
        state, broken = super().step(ctrl)
        if held.size:
            # Without contacts the parked bodies have fallen a little.
            for rows, values, width in ((self._qpos, held, 7), (self._qvel, 0.0, 6)):
                part = rows[:, -width * parked.shape[1] :].reshape(*parked.shape, width)
                part[parked] = values
            state = PhysicsState(self._qpos.copy(), self._qvel.copy(), state.sensordata)
        return state, broken

    def _can_rest(self, bodies: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        """[B, V] from bodies [B, V, 7] and their velocities [B, V, 6]."""
        resting = (np.abs(velocities).max(axis=2) < REST_SPEED) & (
            np.abs(bodies[:, :, 2] - self._height) < REST_HEIGHT
        )
        speed = np.hypot(self._qvel[:, 0], self._qvel[:, 1])
        reach = self._pusher_radius + self._radius + SLACK + speed * self._step_time
        away = bodies[:, :, :2] - self._qpos[:, None, :2]
        # Written so that a comparison with NaN keeps the body awake.
        parked = resting & (np.hypot(away[..., 0], away[..., 1]) > reach[:, None])
        if parked.shape[1] > 1:
            parked &= ~self._reached_by_moving(parked, bodies, velocities)
        return parked

    def _reached_by_moving(
        self, parked: np.ndarray, bodies: np.ndarray, velocities: np.ndarray
    ) -> np.ndarray:
        """[B, V] what a body that is awake could touch within the step, through others as well."""
        between = bodies[:, :, None, :2] - bodies[:, None, :, :2]
        speed = np.hypot(velocities[..., 0], velocities[..., 1]).max(axis=1)
        reach = 2 * self._radius + SLACK + speed * self._step_time
        touches = np.hypot(between[..., 0], between[..., 1]) < reach[:, None, None]
        reached = ~parked
        for _ in range(parked.shape[1]):
            wider = reached | (touches & reached[:, None, :]).any(axis=2)
            if (wider == reached).all():
                break
            reached = wider
        return reached


def settled_height(model: mujoco.MjModel, bodies: Sequence[str]) -> float:
    """The height at which one of these equal free bodies comes to rest on the floor."""
    data = mujoco.MjData(model)
    for i, name in enumerate(bodies):  # far from each other and from the pusher's start
        data.joint(int(model.body(name).jntadr[0])).qpos[:2] = 100.0, 10.0 * i
    mujoco.mj_step(model, data, 1000)
    return float(data.body(bodies[0]).xpos[2])


def bounding_radius(model: mujoco.MjModel, body: str) -> float:
    """A radius about the body's origin that holds its own and its descendants' geoms, however
    their joints turn about the places where they start."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    root = model.body(body).id
    inside = model.body_rootid[model.geom_bodyid] == root
    centres = np.linalg.norm(data.geom_xpos[inside] - data.xpos[root], axis=1)
    return float((centres + model.geom_rbound[inside]).max())
