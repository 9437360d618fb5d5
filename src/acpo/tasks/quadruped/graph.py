"""MuJoCo inside the compiled graph (MJX): the physics that `device` steps.

What lives between steps is small (`Bodies`): everything else in MJX's data follows from it and is
rebuilt from a template, so a training state stays a few hundred bytes a world.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

from acpo.errors import UserError
from acpo.physics.state import Array, PhysicsState

IMPLEMENTATIONS = ("jax", "warp")
CHUNKS = 32
"""Worlds that end are started again in groups of this fraction of the batch."""


class Bodies(NamedTuple):
    """All that the next step of B worlds depends on, besides controls."""

    qpos: jax.Array
    """[B, nq]"""
    qvel: jax.Array
    """[B, nv]"""
    warmstart: jax.Array
    """[B, nv] where the constraint solver starts from"""


class GraphPhysics(eqx.Module):
    """Worlds of one model under MJX. `fields` are model fields with a leading axis of B worlds."""

    model: Any
    template: Any
    substeps: int = eqx.field(static=True)

    @classmethod
    def create(
        cls, model: mujoco.MjModel, substeps: int, max_worlds: int, impl: str | None = None
    ) -> GraphPhysics:
        """`impl` is "jax" (any device) or "warp" (NVIDIA); None is warp where JAX has a GPU.

        `max_worlds` is the most worlds stepped in one program, seeds included: Warp keeps one
        store of contacts for all of them.
        """
        impl = impl or ("warp" if jax.default_backend() == "gpu" else "jax")
        if impl not in IMPLEMENTATIONS:
            raise UserError(f"There is no MJX implementation '{impl}'; known are: jax, warp.")
        sizes: dict[str, int] = {}
        if impl == "warp":
            contacts, rows = largest_sizes(model)
            sizes = {"naconmax": contacts * max_worlds, "njmax": rows}
        try:
            device_model = mjx.put_model(model, impl=impl)
            template = mjx.make_data(model, impl=impl, **sizes)
        except (ImportError, RuntimeError) as error:
            raise UserError(f"MJX cannot use '{impl}' on this machine: {error}") from error
        return cls(device_model, template, substeps)

    def start(self, qpos: jax.Array, qvel: jax.Array) -> Bodies:
        """Worlds at rest in the solver's memory: qpos [B, nq], qvel [B, nv]."""
        return Bodies(qpos, qvel, jnp.zeros_like(qvel))

    def step(
        self, bodies: Bodies, ctrl: jax.Array, fields: dict[str, jax.Array]
    ) -> tuple[Bodies, PhysicsState]:
        """Hold `ctrl` [B, nu] for `substeps` steps; sensors are of the state after them."""

        def world(
            bodies: Bodies, ctrl: jax.Array, fields: dict[str, jax.Array]
        ) -> tuple[Bodies, PhysicsState]:
            # A step computes the sensors before it integrates. So one more step than asked gives
            # the sensors of the wanted state, and what it integrates is thrown away: the same
            # numbers as a forward computation afterwards, with half as much to compile.
            def substep(bodies: Bodies, _: None) -> tuple[Bodies, tuple[Bodies, jax.Array]]:
                data = self._step(bodies, ctrl, fields)
                after = Bodies(data.qpos, data.qvel, data.qacc_warmstart)
                return after, (bodies._replace(warmstart=data.qacc_warmstart), data.sensordata)

            _, (before, sensors) = jax.lax.scan(substep, bodies, None, length=self.substeps + 1)
            last = jax.tree.map(lambda values: values[-1], before)
            return last, PhysicsState(last.qpos, last.qvel, sensors[-1])

        return jax.vmap(world)(bodies, ctrl, fields)

    def forward(self, bodies: Bodies, ctrl: jax.Array, fields: dict[str, jax.Array]) -> PhysicsState:
        """Sensors at the present state, with `ctrl` [B, nu] applied."""

        def world(bodies: Bodies, ctrl: jax.Array, fields: dict[str, jax.Array]) -> jax.Array:
            return mjx.forward(*self._load(bodies, ctrl, fields)).sensordata

        return PhysicsState(bodies.qpos, bodies.qvel, jax.vmap(world)(bodies, ctrl, fields))

    def restart(
        self,
        bodies: Bodies,
        sensors: Array,
        *,
        chosen: jax.Array,
        fresh: Bodies,
        ctrl: jax.Array,
        fields: dict[str, jax.Array],
    ) -> tuple[Bodies, PhysicsState]:
        """Put `chosen` [B] worlds at `fresh`, with sensors as `ctrl` [B, nu] makes them there.

        `sensors` [B, ns] are those of the worlds that go on.

        Few worlds end in one step, so sensors are computed for a small group at a time, as often
        as it takes: on average a thirtieth of a forward computation of all.
        """
        count = chosen.shape[0]
        group = min(count, max(8, count // CHUNKS))
        order = jnp.nonzero(chosen, size=count + group, fill_value=count)[0]
        total = chosen.sum()

        def unfinished(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
            return carry[0] < total

        def next_group(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            done, sensors = carry
            ids = jax.lax.dynamic_slice(order, (done,), (group,))
            taken = jax.tree.map(lambda values: values.at[ids].get(mode="clip"), (fresh, ctrl, fields))
            return done + group, sensors.at[ids].set(self.forward(*taken).sensordata, mode="drop")

        start = (jnp.zeros((), total.dtype), jnp.asarray(sensors))
        _, sensors = jax.lax.while_loop(unfinished, next_group, start)
        merged = Bodies(*(_choose(chosen, new, old) for new, old in zip(fresh, bodies, strict=True)))
        return merged, PhysicsState(merged.qpos, merged.qvel, sensors)

    def _load(self, bodies: Bodies, ctrl: jax.Array, fields: dict[str, jax.Array]) -> tuple[Any, Any]:
        data = self.template.replace(
            qpos=bodies.qpos, qvel=bodies.qvel, qacc_warmstart=bodies.warmstart, ctrl=ctrl
        )
        return self.model.replace(**fields), data

    def _step(self, bodies: Bodies, ctrl: jax.Array, fields: dict[str, jax.Array]) -> Any:
        return mjx.step(*self._load(bodies, ctrl, fields))


def largest_sizes(model: mujoco.MjModel) -> tuple[int, int]:
    """Contacts and constraint rows of a world at worst, as MJX-JAX lays them out."""
    data = mjx.make_data(model, impl="jax")._impl
    return int(data.ncon), int(data.nefc)


def _choose(mask: jax.Array, new: jax.Array, old: jax.Array) -> jax.Array:
    return jnp.where(mask[:, None], new, old)
