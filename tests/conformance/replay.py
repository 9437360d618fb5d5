"""Replay a recording of the original, step by step, and print how far we are from it.

    python tests/conformance/replay.py FILE.npz [--backend native|mjx] [--no-park] [--tolerance T] [--double]

Every recorded state is set, its action applied for one step, and the result compared; then, apart
from physics, lidar, reward, cost and flags are computed from the recorded next state. One JSON
line comes out: for each field the largest error and its 99th percentile. `rest` fields are over
the steps in which the vase stays where it is (all steps of Circle), `moving` over the others. The
first step of a Car episode is left out of the physics, for it cannot be reproduced (navigation
specification, section 0, item 6). The format of a recording is in docs/tasks.md.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from acpo.errors import UserError
from acpo.physics.native import NativePhysics
from acpo.physics.resting import RestingPhysics
from acpo.physics.state import PhysicsState
from acpo.tasks.navigation import rules as make_rules
from acpo.tasks.navigation.circle import CircleState
from acpo.tasks.navigation.episode import EpisodeState, Rules
from acpo.tasks.navigation.goal import Goal, GoalState
from acpo.tasks.navigation.lidar import BINS
from acpo.tasks.navigation.model import build_model, vase_names

VASE_MOVED = 1e-5
"""A vase that moves further than this (m) in a step, or is touched, counts as moving."""


def load(path: str | Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def rules_of(trace: dict[str, np.ndarray]) -> Rules:
    """Robot and game follow from the fields and their sizes; recordings are of level 1."""
    goal = "goal_xy" in trace
    robot = "Point" if trace["qpos"].shape[1] - 7 * goal == 3 else "Car"
    return make_rules(robot, "Goal" if goal else "Circle", 1)


def to_world(rules: Rules, trace: dict[str, np.ndarray], qpos: np.ndarray, qvel: np.ndarray) -> Any:
    """The recorded Point moves along its starting axes; ours along the world's."""
    if rules.robot.name == "Car":
        return qpos, qvel
    episode = trace["episode"]
    yaw, start = trace["ep_agent_yaw0"][episode], trace["ep_agent_body_pos"][episode, :2]
    qpos, qvel = qpos.copy(), qvel.copy()
    qpos[:, :2] = start + turn(yaw, qpos[:, :2])
    qpos[:, 2] += yaw
    qvel[:, :2] = turn(yaw, qvel[:, :2])
    return qpos, qvel


def turn(yaw: np.ndarray, xy: np.ndarray) -> np.ndarray:
    c, s = np.cos(yaw), np.sin(yaw)
    return np.stack([c * xy[:, 0] - s * xy[:, 1], s * xy[:, 0] + c * xy[:, 1]], axis=1)


def game_before(rules: Rules, trace: dict[str, np.ndarray], goal: str = "goal_xy") -> Any:
    if not isinstance(rules.game, Goal):
        return CircleState()
    hazards = trace["ep_hazards_xy"][trace["episode"]]
    return GoalState(*map(jnp.asarray, (trace[goal], hazards, trace["last_dist_goal"])))


def spread(error: np.ndarray) -> dict[str, float]:
    """Largest and 99th percentile over steps of an error [N] or [N, n]."""
    if error.size == 0:
        return {"max": 0.0, "p99": 0.0, "steps": 0}
    worst = np.abs(error).reshape(len(error), -1).max(axis=1)
    return {"max": float(worst.max()), "p99": float(np.percentile(worst, 99)), "steps": len(worst)}


def sensor_fields(rules: Rules) -> dict[str, slice]:
    names = {"accelerometer": 3, "velocimeter": 3, "gyro": 3, "magnetometer": 3}
    if rules.robot.name == "Car":
        names |= {"ballangvel_rear": 3, "ballquat_rear": 9}
    ends = np.cumsum(list(names.values()))
    return {name: slice(int(e) - n, int(e)) for (name, n), e in zip(names.items(), ends, strict=True)}


def physics_errors(rules: Rules, trace: dict[str, np.ndarray], physics: Any) -> dict[str, Any]:
    """One step of physics from every recorded state."""
    nq, nv = rules.robot.nq, rules.robot.nv
    qpos, qvel = to_world(rules, trace, trace["qpos"], trace["qvel"])
    physics.set_state(np.arange(len(qpos)), qpos, qvel)
    after, broken = physics.step(np.clip(trace["action"], -1.0, 1.0))
    qpos_next, qvel_next = to_world(rules, trace, trace["qpos_next"], trace["qvel_next"])

    moved = np.zeros(len(qpos), bool)
    if rules.game.vases:
        moved = np.abs(trace["qpos_next"][:, nq:] - trace["qpos"][:, nq:]).max(axis=1) > VASE_MOVED
        moved |= trace["vase_contact"]
    used = (trace["t"] > 0) | (rules.robot.name == "Point")
    rest, moving = used & ~moved, used & moved

    sensors = np.asarray(rules.robot.sensors(jnp.asarray(after.sensordata)))
    errors: dict[str, Any] = {"steps": len(qpos), "broken_worlds": int(broken.sum())}
    for label, mask in (("rest", rest), ("moving", moving))[: 1 + bool(rules.game.vases)]:
        errors[f"qpos_{label}"] = spread((after.qpos - qpos_next)[mask, :nq])
        errors[f"qvel_{label}"] = spread((after.qvel - qvel_next)[mask, :nv])
        for name, part in sensor_fields(rules).items():
            errors[f"{name}_{label}"] = spread((sensors - trace["obs"][:, : sensors.shape[1]])[mask, part])
        if rules.game.vases:
            errors[f"vase_qpos_{label}"] = spread((after.qpos - qpos_next)[mask, nq:])
            errors[f"vase_qvel_{label}"] = spread((after.qvel - qvel_next)[mask, nv:])
    return errors


def logic_errors(rules: Rules, trace: dict[str, np.ndarray]) -> dict[str, Any]:
    """Lidar, reward, cost and flags from the recorded next states, without physics."""
    count = len(trace["t"])
    qpos, qvel = to_world(rules, trace, trace["qpos_next"], trace["qvel_next"])
    physics = PhysicsState(*map(jnp.asarray, (qpos, qvel, np.ones((count, rules.robot.sensordata_size)))))
    state = EpisodeState(
        game_before(rules, trace),
        jnp.asarray(trace["t"], jnp.int32),
        jnp.zeros(count),
        jnp.zeros((count, 1)),
        jnp.zeros_like(jnp.asarray(trace["obs"])),
        jax.random.key_data(jax.random.key(0)),
    )
    following, out = rules.advance(state, physics, jnp.zeros(count, bool))
    # The goal that replaced a met one is random, so the recorded one is put in for the lidar.
    observed = rules.observe(game_before(rules, trace, "goal_xy_next"), physics)

    kinds = ["goal", "hazards", "vases"] if isinstance(rules.game, Goal) else ["circle"]
    first = rules.robot.sensor_size
    errors: dict[str, Any] = {}
    for i, kind in enumerate(kinds):
        part = slice(first + BINS * i, first + BINS * (i + 1))
        errors[f"{kind}_lidar"] = spread(np.asarray(observed)[:, part] - trace["obs"][:, part])
    cost = np.asarray(out.costs)[:, 0]
    entry = trace["cost_hazards" if isinstance(rules.game, Goal) else "cost_out_of_boundary"]
    errors["reward"] = spread(np.asarray(out.reward) - trace["reward"])
    errors["cost"] = spread(np.maximum(np.abs(cost - entry), np.abs(cost - trace["cost_sum"])))
    for name in ("terminated", "truncated", "goal_met"):
        errors[f"{name}_mismatches"] = int((np.asarray(getattr(out, name)) != trace[name]).sum())
    if isinstance(rules.game, Goal):
        errors["new_goals_misplaced"] = misplaced(rules.game, following, rules.world(physics), trace)
    return errors


def misplaced(game: Goal, state: EpisodeState, world: Any, trace: dict[str, np.ndarray]) -> int:
    """How many of the goals that we drew in place of met ones break a rule of placement."""
    met = trace["goal_met"]
    goal = np.asarray(state.game.goal_xy)[met]
    centres = [np.asarray(world.body.position)[met, None, :2], trace["ep_hazards_xy"][trace["episode"]][met]]
    gaps = [*centres, np.asarray(world.vases_xy)[met]]
    least = (0.705, 0.485, 0.455)
    fine = np.abs(goal).max(axis=1, initial=0) <= game.placement.half - 0.305
    for others, gap in zip(gaps, least, strict=True):
        fine &= (np.linalg.norm(others - goal[:, None], axis=2) >= gap).all(axis=1)
    return int((~fine).sum())


def native_physics(
    rules: Rules, count: int, park: bool = True, tolerance: float | None = None
) -> NativePhysics:
    vases = rules.game.vases
    model = build_model(rules.robot, vases, rules.game.vases_cost)
    if tolerance is not None:
        model.opt.tolerance = tolerance
    alone = build_model(rules.robot, 0, False)
    alone.opt.tolerance = model.opt.tolerance
    names = vase_names(vases)
    return RestingPhysics(model, alone, count, rules.robot.substeps, pusher="agent", bodies=names, park=park)


def replay(
    path: str | Path,
    backend: str = "native",
    *,
    park: bool = True,
    tolerance: float | None = None,
    double: bool = False,
) -> dict[str, Any]:
    trace = load(path)
    rules = rules_of(trace)
    head = {"task": rules.spec().name, "backend": backend}
    if backend == "native":
        with jax.enable_x64(True):
            physics = native_physics(rules, len(trace["t"]), park, tolerance)
            return head | physics_errors(rules, trace, physics) | logic_errors(rules, trace)
    with jax.enable_x64(double):
        stepper = mjx_physics(rules, len(trace["t"]))
        head |= {"implementation": stepper.implementation, "double": double}
        return head | physics_errors(rules, trace, stepper) | logic_errors(rules, trace)


def mjx_physics(rules: Rules, count: int) -> Any:
    """MJX behind the two calls that a replay needs.

    MJX-JAX cannot collide a cylinder with a box. Without an NVIDIA card, MJX's other implementation
    then steps the same worlds on the CPU, where its kernels run too, if warp-lang is installed.
    """
    from acpo.tasks.navigation.device import NavigationDeviceTask  # noqa: PLC0415

    try:
        return GraphStepper(NavigationDeviceTask.create(rules, count).physics)
    except UserError:
        if importlib.util.find_spec("warp") is None:
            raise
        return WarpStepper(rules, count)


class GraphStepper:
    """Physics as the task on the device has it."""

    def __init__(self, physics: Any) -> None:
        self._physics = physics
        self.implementation = physics.implementation

    def set_state(self, _: Any, qpos: np.ndarray, qvel: np.ndarray) -> None:
        self._bodies = self._physics.start(qpos, qvel)

    def step(self, ctrl: np.ndarray) -> tuple[PhysicsState, np.ndarray]:
        _, state, broken = eqx.filter_jit(self._physics.step)(self._bodies, ctrl)
        return PhysicsState(*map(np.asarray, state)), np.asarray(broken)


class WarpStepper:
    """mujoco_warp on whatever device it finds, without JAX around it."""

    implementation = "warp without JAX"

    def __init__(self, rules: Rules, count: int) -> None:
        from mujoco.mjx.third_party import mujoco_warp  # noqa: PLC0415

        from acpo.physics.mjx import TOLERANCE  # noqa: PLC0415
        from acpo.tasks.navigation.device import most_contacts  # noqa: PLC0415

        model = build_model(rules.robot, rules.game.vases, rules.game.vases_cost)
        model.opt.tolerance = TOLERANCE
        contacts = most_contacts(rules)
        self._warp, self._substeps = mujoco_warp, rules.robot.substeps
        self._model = mujoco_warp.put_model(model)
        self._data = mujoco_warp.make_data(
            model, nworld=count, naconmax=count * contacts // 2, njmax=10 * contacts
        )

    def set_state(self, _: Any, qpos: np.ndarray, qvel: np.ndarray) -> None:
        self._data.qpos.assign(qpos.astype(np.float32))
        self._data.qvel.assign(qvel.astype(np.float32))

    def step(self, ctrl: np.ndarray) -> tuple[PhysicsState, np.ndarray]:
        self._data.ctrl.assign(ctrl.astype(np.float32))
        for _ in range(self._substeps):
            self._warp.step(self._model, self._data)
        self._warp.forward(self._model, self._data)
        fields = (self._data.qpos, self._data.qvel, self._data.sensordata)
        return PhysicsState(*(f.numpy() for f in fields)), self._data.overflow.numpy() != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--backend", choices=("native", "mjx"), default="native")
    parser.add_argument("--no-park", action="store_true", help="simulate resting vases too")
    parser.add_argument("--tolerance", type=float, help="the solver's, instead of the model's own")
    parser.add_argument("--double", action="store_true", help="mjx in double precision (implementation jax)")
    args = parser.parse_args()
    options = {"park": not args.no_park, "tolerance": args.tolerance, "double": args.double}
    try:
        with contextlib.redirect_stdout(sys.stderr):  # MJX and Warp talk while they load
            found = replay(args.file, args.backend, **options)
        print(json.dumps(found))
    except UserError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
