"""Environments as other people write them, good and bad, for the tests of `acpo.tasks.gym`."""

import os

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete


class Walk(gymnasium.Env):
    """A noisy walk on a line: reward x, cost where x > 1, ends at |x| > 3, with a scalar in the info."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Box(-0.5, 0.5, (1,), np.float32)

    def __init__(self, limit=12, ends=3.0):
        self.limit, self.ends = limit, ends

    def observe(self):
        return np.array([self.x, self.t], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = float(self.np_random.normal()), 0
        return self.observe(), {}

    def move(self, action):
        self.x += float(action[0]) + 0.1 * float(self.np_random.normal())
        self.t += 1
        return self.observe(), self.x, float(self.x > 1), abs(self.x) > self.ends, self.t >= self.limit

    def step(self, action):
        observation, reward, cost, terminated, truncated = self.move(action)
        return observation, reward, terminated, truncated, {"cost": cost}


class SixValues(Walk):
    def step(self, action):
        return (*self.move(action), {})


class Vector(Walk):
    cost_names = ("high", "low")

    def step(self, action):
        observation, reward, cost, terminated, truncated = self.move(action)
        return observation, reward, terminated, truncated, {"costs": np.array([cost, float(self.x < -1)])}


def wrapped():
    """As `gymnasium.make` gives environments: in wrappers that hide their attributes."""
    return gymnasium.wrappers.OrderEnforcing(gymnasium.wrappers.TimeLimit(Vector(), 11))


class DictDiscrete(Walk):
    observation_space = Dict({"t": Discrete(20), "x": Box(-np.inf, np.inf, (1,), np.float32)})
    action_space = Discrete(3, start=-1)

    def observe(self):
        return {"x": np.array([self.x], np.float32), "t": self.t}

    def move(self, action):
        assert -1 <= action <= 1
        return super().move([action])


class NoCost(Walk):
    def step(self, action):
        observation, reward, _, terminated, truncated = self.move(action)
        return observation, reward, terminated, truncated, {}


class WrongShape(Walk):
    def observe(self):
        return np.zeros(3, np.float32)


class Raises(Walk):
    def step(self, action):
        if self.t == 3:
            raise RuntimeError("the motor is on fire")
        return super().step(action)


class Dies(Walk):
    def step(self, action):
        if self.t == 3:
            os._exit(1)
        return super().step(action)


class Breaks(Walk):
    """Its simulator returns NaN at the fourth step."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        if self.t == 4:
            observation = observation * np.nan
        return observation, reward, terminated, truncated, info


class Unrepeatable(Walk):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None, options=options)


def nothing():
    return 42


number = 42
