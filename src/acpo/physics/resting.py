"""Free bodies at rest cost nothing: they leave the physics until something could reach them.

A box lying on the floor keeps four contacts of forty constraint rows busy to stay where it is
(navigation specification, section 10: 177 of 208 µs of a PointGoal1 step). MuJoCo's own sleep
does away with that, but whether a body sleeps is not part of MuJoCo's saved state, so a run could
not resume exactly. Here the decision is made anew at each step from positions and velocities
alone, for each world and body. A world in which all of them rest is stepped by a model without
them; in the others, those that rest have their collisions switched off.
"""

from __future__ import annotations

import itertools
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
    and sensors come last in the model. A resting body that neither the pusher nor a moving body can
    reach within the step stays exactly where it is, with velocity zero; the others are simulated.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        alone: mujoco.MjModel,
        num_worlds: int,
        substeps: int,
        *,
        pusher: str,
        bodies: Sequence[str],
        threads: int | None = None,
        park: bool = True,
    ) -> None:
        """`alone` is `model` without the free bodies. `park` off simulates all of them always."""
        super().__init__(model, num_worlds, substeps, threads)
        self._park = park and bool(bodies)
        if not self._park:
            return
        self._alone = NativePhysics(alone, num_worlds, substeps, threads)
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
        # Views of the coordinates of the pusher and of the bodies, and of the solver's memory.
        shape = (num_worlds, len(bodies))
        self._bodies = self._qpos[:, alone.nq :].reshape(*shape, 7)
        self._speeds = self._qvel[:, alone.nv :].reshape(*shape, 6)
        warmstart = self.batch.bind("qacc_warmstart")[:, : alone.nv]
        self._pusher = [self._qpos[:, : alone.nq], self._qvel[:, : alone.nv], warmstart]
        self._latest = np.zeros_like(self._sensordata)
        self._step_time = model.opt.timestep * substeps
        self._height = settled_height(model, bodies)
        self._radius = float(model.geom_rbound[geom_ids[0]])
        self._flat_radius = float(np.hypot(*np.sort(model.geom_size[geom_ids[0]])[1:]))
        self._pusher_radius = bounding_radius(model, pusher)
        self.parked = np.zeros(shape, bool)
        """[B, V] the bodies that the last step left out."""

    def step(self, ctrl: np.ndarray) -> tuple[PhysicsState, np.ndarray]:
        if not self._park:
            return super().step(ctrl)
        parked = self._can_rest(self._bodies, self._speeds)
        if (parked != self.parked).any():
            self.parked = parked
            for field, ids, awake in self._bits:
                field[:, ids] = np.where(parked, 0, awake)
        held = self._bodies[parked]
        self._ctrl[:] = ctrl
        free = parked.all(axis=1)
        broken = np.zeros(self.num_worlds, bool)
        broken[free] = self._step_alone(np.flatnonzero(free))
        busy = np.flatnonzero(~free)
        if busy.size:
            self._advance(busy)
            self._latest[busy] = self._sensordata[busy]
            broken[busy] = self._broken()[busy]
        # Without contacts the bodies that were left out of a busy world have fallen a little.
        self._bodies[parked] = held
        self._speeds[parked] = 0.0
        return self.state(), broken

    def forward(self, worlds: np.ndarray | None = None) -> PhysicsState:
        if not self._park:
            return super().forward(worlds)
        super().forward(worlds)
        chosen = slice(None) if worlds is None else worlds
        self._latest[chosen] = self._sensordata[chosen]
        return self.state()

    def state(self) -> PhysicsState:
        if not self._park:
            return super().state()
        return PhysicsState(self._qpos.copy(), self._qvel.copy(), self._latest.copy())

    def _step_alone(self, worlds: np.ndarray) -> np.ndarray:
        """Step these worlds by the model without free bodies; gives which of them broke [n]."""
        if not worlds.size:
            return np.zeros(0, bool)
        alone = self._alone
        theirs = [alone.batch.bind(name) for name in ("qpos", "qvel", "qacc_warmstart")]
        for mine, other in zip(self._pusher, theirs, strict=True):
            other[worlds] = mine[worlds]
        alone._ctrl[worlds] = self._ctrl[worlds]
        alone._advance(worlds)
        for mine, other in zip(self._pusher, theirs, strict=True):
            mine[worlds] = other[worlds]
        self._latest[worlds] = 0.0  # of the bodies' sensors; nothing touches them
        self._latest[worlds, : alone.model.nsensordata] = alone._sensordata[worlds]
        return alone._broken()[worlds]

    def _can_rest(self, bodies: np.ndarray, velocities: np.ndarray) -> np.ndarray:
        """[B, V] from bodies [B, V, 7] and their velocities [B, V, 6]."""
        resting = (np.abs(velocities).max(axis=2) < REST_SPEED) & (
            np.abs(bodies[:, :, 2] - self._height) < REST_HEIGHT
        )
        speed = np.hypot(self._qvel[:, 0], self._qvel[:, 1])
        reach = self._pusher_radius + self._flat_radius + SLACK + speed * self._step_time
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
    radii = []
    for geom in np.flatnonzero(model.body_rootid[model.geom_bodyid] == root):
        centre = data.geom_xpos[geom] - data.xpos[root]
        about, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
        corners = about + half * np.array(list(itertools.product((-1, 1), repeat=3)))
        box = np.linalg.norm(centre + corners @ data.geom_xmat[geom].reshape(3, 3).T, axis=1).max()
        # Either holds the geom: a sphere about it, or the corners of a box around it.
        radii.append(min(np.linalg.norm(centre) + model.geom_rbound[geom], box))
    return float(max(radii))
