"""Environments whose returns are known beforehand, and environments with everything wrong with them."""

import sys

import gymnasium
import numpy as np
from foreign_envs import Vector, Walk
from gymnasium.spaces import Box, Discrete, MultiDiscrete


class TwoCosts(gymnasium.Env):
    """Five steps whatever one does: reward 1, 2, 3, 4, 5; cost "even" 2 and cost "late" 3 in the last
    two steps. Returns: 15, (10, 6)."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Box(-1, 1, (1,), np.float32)
    cost_names = ("even", "late")

    def observe(self):
        return np.array([self.t / 5, self.shade], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.shade = 0, float(self.np_random.normal())
        return self.observe(), {}

    def step(self, action):
        self.t += 1
        costs = np.array([2.0, 3.0 * (self.t > 3)])
        return self.observe(), float(self.t), self.t == 5, False, {"costs": costs}


class Choices(TwoCosts):
    """The same with three actions instead of a number."""

    action_space = Discrete(3, start=1)


class ImportsWithin(Walk):
    def __init__(self):
        import no_such_robot  # noqa: F401, PLC0415


class NeedsArgument(Walk):
    def __init__(self, size):
        pass


class RaisesWhenMade(Walk):
    def __init__(self):
        raise ValueError("no such port")


class RaisesInReset(Walk):
    def reset(self, **_):
        raise RuntimeError("cable\nunplugged")


class ExitsInReset(Walk):
    def reset(self, **_):
        sys.exit(3)


class TwoValues(Walk):
    def step(self, action):
        return self.observe(), 1.0


class OldStep(Walk):
    def step(self, action):
        return self.observe(), 1.0, False, {}


class OldReset(Walk):
    def reset(self, **keywords):
        return super().reset(**keywords)[0]


class NoReward(Walk):
    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, None, terminated, truncated, info


class NoSpaces:
    def reset(self, seed=None): ...

    def step(self, action): ...


class GraphSpace(Walk):
    observation_space = gymnasium.spaces.Graph(Box(0, 1), None)


class ManyActions(Walk):
    action_space = MultiDiscrete([2, 2])


class TextCost(Walk):
    def step(self, action):
        *rest, _ = super().step(action)
        return *rest, {"cost": "high"}


class TableOfCosts(Walk):
    def step(self, action):
        *rest, _ = super().step(action)
        return *rest, {"costs": np.zeros((2, 2))}


class ChangingCosts(Vector):
    def step(self, action):
        *rest, info = super().step(action)
        return *rest, {"costs": info["costs"][: 1 + (self.t < 3)]}


class NaNReward(Walk):
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float("nan") if self.t == 2 else 0.0, *rest


class NaNCost(Walk):
    def step(self, action):
        *rest, _ = super().step(action)
        return *rest, {"cost": float("inf")}


class NaNObservation(Walk):
    def observe(self):
        return np.full(2, np.nan, np.float32)


def several():
    return gymnasium.make_vec("CartPole-v1", 2)


def without_cost():
    return gymnasium.make("CartPole-v1")
