"""MuJoCo on threads: B copies of one model, stepped together on the host.

A thin class over `mujoco.batch` that knows nothing of tasks: it takes controls, gives back the
state and the sensors of a forward computation at that very state, and says which worlds broke.
"""

from __future__ import annotations

import os

import mujoco
import mujoco.batch
import numpy as np

from acpo.physics.state import PhysicsState

BROKEN = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
    mujoco.mjtWarning.mjWARN_BADCTRL,
    mujoco.mjtWarning.mjWARN_CONTACTFULL,
    mujoco.mjtWarning.mjWARN_CNSTRFULL,
)
"""Warnings after which a world's numbers mean nothing: MuJoCo silently restores the initial state
after the first three, ignores a non-finite control and drops the contacts that do not fit."""


def available_threads() -> int:
    """How many CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class NativePhysics:
    """B worlds of `model`; one `step` is `substeps` of MuJoCo's and one forward computation.

    Results do not depend on the number of threads. `batch` is MuJoCo's own object, for whoever
    needs more (per-world model fields through `batch.expand`, rendering through `batch.get_data`).
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        num_worlds: int,
        substeps: int,
        threads: int | None = None,
        persistent: bool = False,
    ) -> None:
        """`threads` is the CPUs the process may use when None.

        `persistent` keeps an `MjData` for each world. It saves the repeated position stage of the
        first substep, and models that let bodies sleep need it. Sleep itself is not part of
        MuJoCo's saved state, so a task that must resume bit for bit does without.
        """
        self.model = model
        self.num_worlds = num_worlds
        self.substeps = substeps
        self.batch = mujoco.batch.Batch(model, num_worlds, threads or available_threads(), persistent)
        self._qpos = self.batch.bind("qpos")
        self._qvel = self.batch.bind("qvel")
        self._ctrl = self.batch.bind("ctrl")
        self._sensordata = self.batch.bind("sensordata")
        self.batch.reset()

    def set_state(self, worlds: np.ndarray, qpos: np.ndarray, qvel: np.ndarray) -> None:
        """Put `worlds` (sorted ids, or a mask [B]) into `qpos` [n, nq], `qvel` [n, nv].

        Their clock, controls and solver warmstart become zero, as after a reset of the simulator.
        The sensors follow at the next `forward` or `step`.
        """
        ids = np.flatnonzero(worlds) if np.asarray(worlds).dtype == bool else np.asarray(worlds)
        if ids.size == 0:
            return
        self.batch.reset(ids, stage=mujoco.mjtStage.mjSTAGE_NONE.value)
        self._qpos[ids] = qpos
        self._qvel[ids] = qvel

    def step(self, ctrl: np.ndarray) -> tuple[PhysicsState, np.ndarray]:
        """Hold `ctrl` [B, nu] for one step. Gives the state after it and the broken worlds [B].

        The sensors, accelerations included, belong to the final state with `ctrl` still applied.
        """
        self._ctrl[:] = ctrl
        self._advance()
        return self.state(), self._broken()

    def forward(self, worlds: np.ndarray | None = None) -> PhysicsState:
        """Compute the sensors at the present state, of all worlds or of some; gives all B."""
        self.batch.forward(worlds)
        return self.state()

    def state(self) -> PhysicsState:
        """Copies of the present state and of the sensors last computed."""
        return PhysicsState(self._qpos.copy(), self._qvel.copy(), self._sensordata.copy())

    def save(self) -> dict[str, np.ndarray]:
        """All that the next step depends on: positions, velocities, clocks, warmstart, controls."""
        return {"rows": self.batch.state.copy()}

    def load(self, saved: dict[str, np.ndarray]) -> None:
        """Go on from `save`, bit for bit. The sensors follow at the next `forward` or `step`."""
        self.batch.state[:] = saved["rows"]

    def _advance(self, worlds: np.ndarray | None = None) -> None:
        """One step of some worlds or of all, with the controls that they have."""
        self.batch.warning[:] = 0
        self.batch.step(worlds, nstep=self.substeps, stage=mujoco.mjtStage.mjSTAGE_ACC.value)

    def _broken(self) -> np.ndarray:
        counts = self.batch.warning[:, :, 1]
        warned = counts[:, [int(kind) for kind in BROKEN]].any(axis=1)
        finite = np.isfinite(self._qpos).all(axis=1) & np.isfinite(self._qvel).all(axis=1)
        return warned | ~finite | ~np.isfinite(self._sensordata).all(axis=1)
