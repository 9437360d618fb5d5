"""MuJoCo inside the compiled graph: B worlds of one model under MJX, in single precision.

Two implementations stand behind the same calls: "warp" (mujoco_warp, NVIDIA cards) and "jax" (any
device, but it cannot collide a cylinder with a box). Everything is a pure function of `Bodies`.
"""

from __future__ import annotations

import contextlib
import copy
import io
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from acpo.errors import UserError
from acpo.physics.state import PhysicsState

with contextlib.redirect_stdout(io.StringIO()):  # it prints that Warp is missing, no fault on a CPU
    from mujoco import mjx

TOLERANCE = 1e-6
"""The solver's tolerance: below it there is only the noise of single precision to iterate on."""
ROOM = ("NEFC", "NJMAX_NNZ", "BROADPHASE", "NARROWPHASE", "CCD", "CONTACT_MATCH", "NVMAX")
"""Warp's flags for stores that were full, so that a contact or a constraint was left out. Others
tell of iterations that ended at their limit, which is what a limit is for."""
ITERATIONS, LINE_SEARCH = 12, 20
"""The most that the solver may iterate. In double precision the recorded navigation steps need 10
and converge with as many line-search steps; noise that stays above the tolerance in one world would
otherwise keep all of them iterating to MuJoCo's 100."""


class Bodies(NamedTuple):
    """All that the next step of B worlds depends on, besides controls."""

    qpos: jax.Array
    """[B, nq]"""
    qvel: jax.Array
    """[B, nv]"""
    warmstart: jax.Array
    """[B, nv] accelerations that the constraint solver starts from"""


Fields = dict[str, jax.Array]
"""Fields of the model, by name, that differ between worlds: [B, …] each."""


class MjxPhysics(eqx.Module):
    """B worlds of one model; one `step` is `substeps` of MuJoCo's and the sensors after them."""

    model: Any
    template: Any
    substeps: int = eqx.field(static=True)
    implementation: str = eqx.field(static=True)
    room: int = eqx.field(static=True)
    """The bits of Warp's overflow flags that mean dropped physics."""

    @classmethod
    def create(
        cls,
        model: mujoco.MjModel,
        substeps: int,
        *,
        worlds: int,
        contacts: int,
        rows: int | None = None,
        implementation: str | None = None,
    ) -> MjxPhysics:
        """`implementation` is "warp" where JAX has an NVIDIA card and "jax" elsewhere when None.

        Warp keeps one store of contacts for all worlds that a program steps, seeds included:
        `worlds` is the most of them, `contacts` the most that a single world can have, `rows` the
        most constraints (None: as many as so many contacts can make). They do not matter to "jax".
        """
        implementation = implementation or ("warp" if jax.default_backend() == "gpu" else "jax")
        if implementation not in ("jax", "warp"):
            raise UserError(f"There is no MJX implementation '{implementation}'; known are: jax, warp.")
        sizes = {}
        if implementation == "warp":
            of_contact = 2 * (max(int(model.geom_condim.max()), 1) - 1)  # pyramidal friction cone
            sizes = {"naconmax": worlds * contacts, "njmax": rows or of_contact * contacts}
        model = copy.copy(model)
        model.opt.tolerance = TOLERANCE
        model.opt.iterations = min(model.opt.iterations, ITERATIONS)
        model.opt.ls_iterations = min(model.opt.ls_iterations, LINE_SEARCH)
        if implementation == "jax":
            _give_a_constraint(model)
        try:
            device_model = mjx.put_model(model, impl=implementation)
            template = mjx.make_data(model, impl=implementation, **sizes)
        except NotImplementedError as error:
            raise UserError(
                f"MJX's '{implementation}' cannot simulate this model ({error}); use the native backend, "
                "or a machine with an NVIDIA card."
            ) from error
        except (ImportError, RuntimeError) as error:
            raise UserError(f"MJX cannot use '{implementation}' on this machine: {error}.") from error
        room = 0
        if implementation == "warp":
            from mujoco.mjx.third_party.mujoco_warp import OverflowType  # noqa: PLC0415

            room = sum(int(OverflowType[name]) for name in ROOM)
            # Its kernels would print a line for each world and step; `step` raises.
            device_model = device_model.tree_replace({"opt._impl.warn_overflow": 0})
        return cls(device_model, template, substeps, implementation, room)

    def start(self, qpos: jax.Array, qvel: jax.Array) -> Bodies:
        """Worlds at qpos [B, nq], qvel [B, nv], with nothing in the solver's memory."""
        dtype = self.template.qpos.dtype
        qpos, qvel = jnp.asarray(qpos, dtype), jnp.asarray(qvel, dtype)
        return Bodies(qpos, qvel, jnp.zeros_like(qvel))

    def step(
        self, bodies: Bodies, ctrl: jax.Array, fields: Fields | None = None
    ) -> tuple[Bodies, PhysicsState, jax.Array]:
        """Hold `ctrl` [B, nu]; gives the worlds after it, their state, and which broke [B].

        MJX's data go through all substeps as one carry: to make them anew for each substep would copy
        every store of contacts and constraints. Sensors are read at the end only.
        """

        def world(bodies: Bodies, ctrl: jax.Array, fields: Fields) -> _After:
            model = self.model.replace(**fields)
            unfelt = model.opt.disableflags | mjx.DisableBit.SENSOR
            moving = model.tree_replace({"opt.disableflags": unfelt})

            def substep(data: Any, _: None) -> tuple[Any, jax.Array]:
                data = mjx.step(moving, data)
                return data, self._overflow(data)

            data, full = jax.lax.scan(substep, self._data(bodies, ctrl), None, length=self.substeps)
            after = self._feel(model, data)
            return after._replace(full=after.full | full.any())

        after = jax.vmap(world)(bodies, jnp.asarray(ctrl, bodies.qpos.dtype), fields or {})
        final, sensordata, full = after
        state = PhysicsState(final.qpos, final.qvel, sensordata)
        finite = [jnp.isfinite(part).all(axis=1) for part in state]
        broken = ~(finite[0] & finite[1] & finite[2])
        # A dropped constraint is wrong physics that nobody would notice.
        final = eqx.error_if(final, full.any(), "MJX ran out of room for contacts or constraints")
        return final, state, broken

    def sensors(self, bodies: Bodies, ctrl: jax.Array, fields: Fields | None = None) -> jax.Array:
        """[B, ns] at the present state with `ctrl` [B, nu] applied."""

        def world(bodies: Bodies, ctrl: jax.Array, fields: Fields) -> jax.Array:
            return self._feel(self.model.replace(**fields), self._data(bodies, ctrl)).sensordata

        return jax.vmap(world)(bodies, jnp.asarray(ctrl, bodies.qpos.dtype), fields or {})

    def _data(self, bodies: Bodies, ctrl: jax.Array) -> Any:
        return self.template.replace(
            qpos=bodies.qpos, qvel=bodies.qvel, qacc_warmstart=bodies.warmstart, ctrl=ctrl
        )

    def _feel(self, model: Any, data: Any) -> _After:
        """Sensors and accelerations at the state of `data`."""
        data = mjx.forward(model, data)
        return _After(Bodies(data.qpos, data.qvel, data.qacc), data.sensordata, self._overflow(data))

    def _overflow(self, data: Any) -> jax.Array:
        """[] whether a contact or a constraint was dropped."""
        if self.implementation == "warp":
            return jnp.any((jnp.asarray(data._impl.overflow) & self.room) != 0)
        return jnp.zeros((), bool)


class _After(NamedTuple):
    """One world after a step."""

    bodies: Bodies
    sensordata: jax.Array
    """[ns]"""
    full: jax.Array
    """[] bool: room ran out"""


def _give_a_constraint(model: mujoco.MjModel) -> None:
    """Limit a joint to where it never comes: MJX-JAX leaves accelerometers at zero in a model that
    cannot have any constraint, such as a Point without vases."""
    joints = (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE)
    for i in np.flatnonzero(np.isin(model.jnt_type, [int(kind) for kind in joints]))[:1]:
        if not model.jnt_limited[i]:
            model.jnt_limited[i], model.jnt_range[i] = True, (-1e6, 1e6)
