"""Anybody's Gymnasium environment as a task, as long as it reports costs.

An environment may return six values (observation, reward, cost, terminated, truncated, info), or
put a number in `info["cost"]`, or a vector in `info["costs"]`. It runs through Gymnasium's vector
API, in this process or in one process per environment.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from acpo.errors import UserError
from acpo.tasks.base import Box, Discrete, Reset, TaskSpec, TimeStep

EPISODE_STEPS = 1000
"""The time limit of environments that have none: learning needs episodes to end."""

Factory = Callable[..., Any]


class CostEnv(gymnasium.Env[Any, Any]):
    """One environment brought into the form that the task below relies on.

    Observations are flat, `info["costs"]` is a vector of always the same length, actions are flat
    numbers clipped to the bounds, each episode starts from a seed of its own, and whatever the
    environment does wrong is told in one sentence.
    """

    def __init__(self, factory: Factory, label: str, index: int, episode_steps: int | None) -> None:
        self._label = label
        self._index = index
        self._env = _build(factory, label)
        self.render_mode = None
        self.limit = episode_steps or _time_limit(self._env) or EPISODE_STEPS
        self.observation_space = self._flat_observations()
        self.action_space = self._flat_actions()
        self.num_costs: int | None = None
        self._seed, self._episode = 0, -1
        self._actions: list[np.ndarray] = []

    def _flat_observations(self) -> gymnasium.spaces.Box:
        space = getattr(self._env, "observation_space", None)
        try:
            assert isinstance(space, gymnasium.Space)
            flat = gymnasium.spaces.flatten_space(space)
            assert isinstance(flat, gymnasium.spaces.Box)
        except (AssertionError, NotImplementedError):
            raise UserError(
                f"{self._label} has observations that cannot be made a vector: {space}."
            ) from None
        return gymnasium.spaces.Box(-np.inf, np.inf, flat.shape, np.float64)

    def _flat_actions(self) -> gymnasium.Space[Any]:
        space = getattr(self._env, "action_space", None)
        if isinstance(space, gymnasium.spaces.Discrete):
            return gymnasium.spaces.Discrete(int(space.n))
        if isinstance(space, gymnasium.spaces.Box):
            return gymnasium.spaces.Box(-np.inf, np.inf, (int(np.prod(space.shape)),), np.float64)
        raise UserError(f"{self._label} has actions that are neither Box nor Discrete: {space}.")

    def begin(self, seeds: list[int]) -> None:
        """Take this environment's seed; its episodes follow from it, one after the other."""
        self._seed, self._episode = seeds[self._index], -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        if seed is not None:
            self._seed, self._episode = seed, -1
        self._episode += 1
        self._actions = []
        # A seed for every episode: with it and the actions since, a resumed run gets back here.
        episode_seed = int(np.random.SeedSequence([self._seed, self._episode]).generate_state(1)[0] >> 1)
        result = self._call("reset", seed=episode_seed)
        if not (isinstance(result, tuple) and len(result) == 2):
            raise UserError(f"{self._label} must return (observation, info) from reset.")
        return self._observation(result[0]), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._actions.append(np.asarray(action))
        result = self._call("step", self._native_action(action))
        if not (isinstance(result, tuple) and len(result) in (5, 6)):
            raise UserError(
                f"{self._label} must return five values from step (observation, reward, terminated, "
                "truncated, info) or six with the cost third."
            )
        if len(result) == 6:
            observation, reward, cost, terminated, truncated, info = result
        else:
            (observation, reward, terminated, truncated, info), cost = result, None
        flat, costs = self._observation(observation), self._costs(cost, info)
        try:
            reward, terminated, truncated = float(reward), bool(terminated), bool(truncated)
        except (TypeError, ValueError):
            raise UserError(f"{self._label} must return one reward and two flags from step.") from None
        # NaN goes through: whoever trains or evaluates names the signal and stops.
        truncated = truncated or len(self._actions) >= self.limit
        return flat, reward, terminated, truncated, {"costs": costs}

    def history(self) -> tuple[int, int, list[np.ndarray]]:
        """Seed, episode and the actions since it began."""
        return self._seed, self._episode, self._actions

    def restore(
        self, seeds: np.ndarray, episodes: np.ndarray, lengths: np.ndarray, actions: np.ndarray
    ) -> Any:
        """Go through the present episode again; gives the observation it leads to."""
        i = self._index
        self._seed, self._episode = int(seeds[i]), int(episodes[i]) - 1
        observation, _ = self.reset()
        for action in actions[i, : lengths[i]]:
            observation = self.step(action)[0]
        return observation

    def close(self) -> None:
        self._env.close()

    def _native_action(self, action: Any) -> Any:
        space = self._env.action_space
        if isinstance(space, gymnasium.spaces.Discrete):
            return int(action) + int(space.start)
        # After a NaN observation the action is one too; the observation is what will be complained of.
        action = np.nan_to_num(np.asarray(action))
        return np.clip(action.reshape(space.shape), space.low, space.high).astype(space.dtype)

    def _observation(self, observation: Any) -> np.ndarray:
        space = self._env.observation_space
        try:
            flat = np.asarray(gymnasium.spaces.flatten(space, observation), np.float64)
        except Exception:
            flat = np.zeros(0)
        fits = not isinstance(space, gymnasium.spaces.Box) or np.shape(observation) == space.shape
        if flat.shape != self.observation_space.shape or not fits:
            raise UserError(
                f"{self._label} returned an observation of shape {np.shape(observation)} that does not fit "
                f"its observation_space {space}."
            )
        return flat

    def _costs(self, cost: Any, info: Any) -> np.ndarray:
        """[K] from the vector in the info, or the sixth value, or the number in the info."""
        info = info if isinstance(info, dict) else {}
        for value in (info.get("costs"), cost, info.get("cost")):
            if value is not None:
                break
        else:
            raise UserError(
                f"{self._label} reports no cost: return six values from step, or put a number in "
                'info["cost"] or a vector in info["costs"] at every step.'
            )
        try:
            costs = np.atleast_1d(np.asarray(value, np.float64))
        except (TypeError, ValueError):
            raise UserError(f"{self._label} reports a cost that is not a number: {value!r}.") from None
        if costs.ndim != 1 or self.num_costs not in (None, costs.size):
            expected = "one dimension" if costs.ndim != 1 else f"{self.num_costs} entries as before"
            raise UserError(f"{self._label} reports costs of shape {costs.shape} instead of {expected}.")
        self.num_costs = costs.size
        return costs

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self._env, method)(*args, **kwargs)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise UserError(f"{self._label} raised {type(error).__name__} in {method}: {error}.") from error


class GymnasiumTask:
    """B environments of one factory: a `HostTask`."""

    def __init__(
        self,
        factory: Factory,
        num_envs: int,
        *,
        label: str | None = None,
        asynchronous: bool = False,
        episode_steps: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """`factory(**options)` makes one environment. `asynchronous` gives each a process of its
        own. `episode_steps` is a time limit, by default the environment's own, or 1000."""
        self.num_envs = num_envs
        self._label = str(label or getattr(factory, "__name__", "The environment"))
        keywords = options or {}

        def one(index: int) -> Callable[[], CostEnv]:
            return lambda: CostEnv(lambda: factory(**keywords), self._label, index, episode_steps)

        self._spec = self._probe(one(0)())
        self._vector: SyncVectorEnv | AsyncVectorEnv
        makers = [one(i) for i in range(num_envs)]
        with self._telling():
            if asynchronous:
                # JAX runs threads, and a plain fork of a process with threads can hang.
                multiprocessing.set_forkserver_preload([__name__])
                self._vector = AsyncVectorEnv(
                    makers, context="forkserver", autoreset_mode=AutoresetMode.SAME_STEP
                )
            else:
                self._vector = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        self._observation = np.zeros((num_envs, self._spec.observation_size), np.float32)

    def _probe(self, env: CostEnv) -> TaskSpec:
        """What one trial step of one environment shows about all of them."""
        try:
            env.reset(seed=0)
            action_space = env._env.action_space
            action_space.seed(0)
            action = action_space.sample()
            flat = (
                action - action_space.start
                if isinstance(env.action_space, gymnasium.spaces.Discrete)
                else action
            )
            env.step(np.asarray(flat).reshape(env.action_space.shape or ()))
            assert env.num_costs is not None
            names = tuple(_attribute(env._env, "cost_names") or ())
            if len(names) != env.num_costs:
                names = ("cost",) if env.num_costs == 1 else tuple(f"cost_{i}" for i in range(env.num_costs))
            actions = env.action_space
            return TaskSpec(
                name=self._label,
                observation_size=int(np.prod(env.observation_space.shape or ())),
                actions=Discrete(int(actions.n))
                if isinstance(actions, gymnasium.spaces.Discrete)
                else Box(int(np.prod(actions.shape or ()))),
                costs=names,
                episode_steps=env.limit,
            )
        finally:
            env.close()

    def spec(self) -> TaskSpec:
        return self._spec

    def reset(self, seed: int) -> Reset:
        """All environments from the start, each with a seed of its own. Clocks start at zero."""
        seeds: list[int | None] = [
            int(s) for s in np.random.SeedSequence(seed).generate_state(self.num_envs) >> 1
        ]
        with self._telling():
            observation, _ = self._vector.reset(seed=seeds)
        self._observation = np.asarray(observation, np.float32)
        return Reset(self._observation, np.zeros(self.num_envs, np.int32))

    def step(self, actions: np.ndarray) -> TimeStep:
        if isinstance(self._spec.actions, Box):
            actions = np.asarray(actions, np.float64).reshape(self.num_envs, self._spec.actions.size)
        with self._telling():
            observation, reward, terminated, truncated, infos = self._vector.step(actions)
        observation = np.asarray(observation, np.float32)
        final = observation.copy()
        costs = np.zeros((self.num_envs, len(self._spec.costs)), np.float32)
        done = terminated | truncated
        # Where an episode ended, Gymnasium moves what the step gave to `final_obs` and `final_info`.
        for source, mask in ((infos, ~done), (infos.get("final_info", {}), done)):
            if mask.any():
                costs[mask] = source["costs"][mask]
        for i in np.flatnonzero(done):
            final[i] = infos["final_obs"][i]
        self._observation = observation
        return TimeStep(
            observation,
            final,
            np.asarray(reward, np.float32),
            costs,
            terminated,
            truncated & ~terminated,
            np.zeros(self.num_envs, bool),
        )

    def save(self) -> dict[str, np.ndarray]:
        """Each environment's seed, episode and the actions since that began; see `load`."""
        with self._telling():
            seeds, episodes, histories = zip(*self._vector.call("history"), strict=True)
        lengths = np.array([len(actions) for actions in histories])
        shape = (self._spec.actions.size,) if isinstance(self._spec.actions, Box) else ()
        actions = np.zeros((self.num_envs, int(lengths.max()), *shape))
        for row, history in zip(actions, histories, strict=True):
            if history:
                row[: len(history)] = history
        return {
            "seeds": np.array(seeds),
            "episodes": np.array(episodes),
            "lengths": lengths,
            "actions": actions,
            "observation": self._observation.copy(),
        }

    def load(self, saved: dict[str, np.ndarray]) -> None:
        """Go through the present episodes again, which is exact where the environment is a function
        of its seed and actions. Where it is not, say so: those episodes go on from elsewhere."""
        arguments = (saved["seeds"], saved["episodes"], saved["lengths"], saved["actions"])
        with self._telling():
            observation = np.stack(self._vector.call("restore", *arguments)).astype(np.float32)
        self._observation = observation
        if not np.array_equal(observation, saved["observation"]):
            warnings.warn(
                f"{self._label} is not determined by its seed and actions, so its episodes do not "
                "resume exactly.",
                stacklevel=2,
            )

    def close(self) -> None:
        self._vector.close()

    def _telling(self) -> _Telling:
        return _Telling(self)


class _Telling:
    """Turns what goes wrong in a vector environment into one sentence."""

    def __init__(self, task: GymnasiumTask) -> None:
        self._task = task

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: Any) -> None:
        if error is None or isinstance(error, UserError) or not isinstance(error, Exception):
            return
        vector = getattr(self._task, "_vector", None)
        if isinstance(error, (EOFError, BrokenPipeError, ConnectionError)):
            if isinstance(vector, AsyncVectorEnv):
                _abandon(vector)
            raise UserError(f"A worker process of {self._task._label} died.") from error
        raise UserError(f"{self._task._label} raised {type(error).__name__}: {error}.") from error


def _abandon(vector: AsyncVectorEnv) -> None:
    """End the workers that are left; a farewell through their pipes would wait for the dead one."""
    for process in vector.processes:
        if process.is_alive():
            process.terminate()
    vector.closed = True


def _attribute(env: Any, name: str) -> Any:
    """An optional attribute. Gymnasium's wrappers do not pass it on, so the inside is asked too."""
    return getattr(env, name, getattr(getattr(env, "unwrapped", env), name, None))


def _time_limit(env: Any) -> int | None:
    """The environment's own limit: registered with it, a wrapper's around it, or an attribute."""
    limit = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    while limit is None and isinstance(env, gymnasium.Wrapper):
        limit, env = getattr(env, "_max_episode_steps", None), env.env
    return limit or _attribute(env, "episode_steps")


def _build(factory: Factory, label: str) -> Any:
    try:
        env = factory()
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{label} raised {type(error).__name__} while it was made: {error}.") from error
    needed = ("reset", "step", "observation_space", "action_space")
    if isinstance(env, VectorEnv) or not all(hasattr(env, name) for name in needed):
        raise UserError(f"{label} gave a {type(env).__name__} where one Gymnasium environment was expected.")
    return env


def from_path(
    path: str,
    num_envs: int,
    *,
    asynchronous: bool = False,
    episode_steps: int | None = None,
    **options: Any,
) -> GymnasiumTask:
    """A task from "package.module:factory"; further options go to the factory.

    Modules in the current directory are found too, after all that is installed: a command starts
    without it, unlike `python -m`.
    """
    module_name, _, attribute = path.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        factory: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise UserError(
            f"The module of '{path}' does not import ({type(error).__name__}: {error})."
        ) from error
    for part in attribute.split("."):
        if not part or not hasattr(factory, part):
            raise UserError(f"The module {module_name} has no '{attribute}'.")
        factory = getattr(factory, part)
    if not callable(factory):
        raise UserError(f"'{path}' is a {type(factory).__name__}, not a function or class that makes one.")
    return GymnasiumTask(
        factory,
        num_envs,
        label=f"'{path}'",
        asynchronous=asynchronous,
        episode_steps=episode_steps,
        options=options,
    )
