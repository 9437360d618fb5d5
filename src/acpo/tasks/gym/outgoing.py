"""Our host tasks as Gymnasium environments, single and batched.

The cost of a step is in `info["cost"]`, the vector of costs in `info["costs"]`, and each cost by
its name in `info["cost_<name>"]`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from acpo.errors import UserError
from acpo.tasks import registry
from acpo.tasks.base import Box, HostTask, TaskSpec


def build(task: str, num_envs: int, backend: str, options: dict[str, Any]) -> HostTask:
    """A registered task, which must live on the host."""
    made = registry.make(task, num_envs, backend, **options)
    if not isinstance(made, HostTask):
        raise UserError(f"The backend '{backend}' of {task} lives on the device; Gymnasium needs 'native'.")
    return made


def spaces(spec: TaskSpec, dtype: np.dtype[Any]) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    """The observation and action spaces of one environment."""
    observations = gymnasium.spaces.Box(-np.inf, np.inf, (spec.observation_size,), dtype.type)
    if isinstance(spec.actions, Box):
        return observations, gymnasium.spaces.Box(-1.0, 1.0, (spec.actions.size,), np.float32)
    return observations, gymnasium.spaces.Discrete(spec.actions.count)


def cost_info(task: HostTask, spec: TaskSpec, costs: np.ndarray) -> dict[str, Any]:
    """The entries of an info about costs [..., K]; `cost` is their sum or what the task makes of it."""
    total = getattr(task, "total_cost", lambda rows: rows.sum(axis=-1))
    named = {f"cost_{name}": costs[..., i] for i, name in enumerate(spec.costs)}
    return {"cost": total(costs), "cost_sum": total(costs), "costs": costs, **named}


class TaskVectorEnv(VectorEnv[Any, Any, Any]):
    """B environments stepped together; an ended one restarts in the same step.

    As in Gymnasium's own vector environments, `infos["final_obs"]` and `infos["final_info"]` hold
    what an ended episode came to; `infos["episode"]` has its return `r`, cost `c` and length `l`.
    """

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        render_mode: str | None = None,
        backend: str = "native",
        **options: Any,
    ) -> None:
        self.task = build(task, num_envs, backend, options)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": ["rgb_array", "rgb_array_top"],
            "autoreset_mode": AutoresetMode.SAME_STEP,
            "render_fps": getattr(self.task, "frames_per_second", 50),
        }
        self._spec = self.task.spec()
        self._sums = np.zeros((num_envs, 2))
        self._lengths = np.zeros(num_envs, int)
        dtype = np.dtype(getattr(self.task, "dtype", np.float32))
        self.single_observation_space, self.single_action_space = spaces(self._spec, dtype)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """All environments from the start; one seed stands for the whole batch."""
        super().reset(seed=seed)
        if options and "reset_mask" in options:
            raise UserError("These environments restart by themselves; a reset_mask has no place here.")
        start = self.task.reset(_seed(self, seed))
        self._sums[:], self._lengths[:] = 0.0, start.elapsed
        return np.asarray(start.observation), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        out = self.task.step(np.asarray(actions).reshape(self.action_space.shape))
        reward = np.asarray(out.reward, np.float64)
        terminated, truncated = np.asarray(out.terminated), np.asarray(out.truncated)
        infos = cost_info(self.task, self._spec, np.asarray(out.costs, np.float64))
        self._sums += np.stack([reward, infos["cost"]], axis=1)
        self._lengths += 1
        met = getattr(self.task, "goal_met", None)
        if met is not None:
            infos["goal_met"] = met
        done = terminated | truncated
        if done.any():
            self._close_episodes(done, np.asarray(out.final_observation), np.asarray(out.failed), infos)
        return np.asarray(out.observation), reward, terminated, truncated, infos

    def _close_episodes(
        self, done: np.ndarray, final: np.ndarray, failed: np.ndarray, infos: dict[str, Any]
    ) -> None:
        episode = {"r": self._sums[:, 0].copy(), "c": self._sums[:, 1].copy(), "l": self._lengths.copy()}
        last = {name: value for name, value in infos.items() if not name.startswith("_")}
        last |= {f"_{name}": done for name in list(last)}
        observations = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(done):
            observations[i] = final[i]
        infos |= {"final_obs": observations, "_final_obs": done, "final_info": last, "_final_info": done}
        infos |= {"episode": episode, "_episode": done}
        if failed.any():
            infos |= {"cost_exception": failed.astype(float), "_cost_exception": failed}
        self._sums[done], self._lengths[done] = 0.0, 0

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of each environment."""
        if self.render_mode is None:
            return None
        return tuple(_render(self.task, i, self.render_mode) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        self.task.close()


class TaskEnv(gymnasium.Env[Any, Any]):
    """One environment of a host task."""

    metadata = {"render_modes": ["rgb_array", "rgb_array_top"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self, task: str, render_mode: str | None = None, backend: str = "native", **options: Any
    ) -> None:
        self.task = build(task, 1, backend, options)
        self.render_mode = render_mode
        self.metadata = self.metadata | {"render_fps": getattr(self.task, "frames_per_second", 50)}
        self._spec = self.task.spec()
        dtype = np.dtype(getattr(self.task, "dtype", np.float32))
        self.observation_space, self.action_space = spaces(self._spec, dtype)
        self._next: np.ndarray | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        first, self._next = self._next, None
        if first is None or seed is not None:
            first = np.asarray(self.task.reset(_seed(self, seed)).observation)[0]
        return first, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if isinstance(self._spec.actions, Box) and np.shape(action) != (self._spec.actions.size,):
            raise ValueError(f"an action has shape ({self._spec.actions.size},), not {np.shape(action)}")
        out = self.task.step(np.asarray(action)[None])
        terminated, truncated = bool(out.terminated[0]), bool(out.truncated[0])
        info = cost_info(self.task, self._spec, np.asarray(out.costs[0], np.float64))
        info = {name: value if np.ndim(value) else float(value) for name, value in info.items()}
        met = getattr(self.task, "goal_met", None)
        if met is not None and met[0]:
            info["goal_met"] = True
        if out.failed[0]:
            info["cost_exception"] = 1.0
        if terminated or truncated:
            # The task has begun the next episode already; `reset` hands it over.
            self._next = np.asarray(out.observation)[0]
        return np.asarray(out.final_observation)[0], float(out.reward[0]), terminated, truncated, info

    def render(self) -> np.ndarray | None:
        return None if self.render_mode is None else _render(self.task, 0, self.render_mode)

    def close(self) -> None:
        self.task.close()


def _seed(env: Any, seed: int | None) -> int:
    """The seed given, or one from Gymnasium's generator of this environment."""
    if isinstance(seed, (int, np.integer)):
        return int(seed)
    return int(env.np_random.integers(2**31))


def _render(task: HostTask, index: int, mode: str) -> np.ndarray:
    draw = getattr(task, "render", None)
    if draw is None:
        raise UserError(f"{task.spec().name} has no picture of itself.")
    return draw(index, top=mode == "rgb_array_top")
