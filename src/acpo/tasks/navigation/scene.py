"""What there is to see of one environment, in plain numbers, for either way of drawing it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from acpo.tasks.navigation.circle import RADIUS, WALL
from acpo.tasks.navigation.episode import Rules
from acpo.tasks.navigation.goal import Goal
from acpo.tasks.navigation.lidar import BINS

Colour = tuple[float, float, float]
GOAL: Colour = (0.20, 0.75, 0.30)
HAZARD: Colour = (0.25, 0.35, 0.90)
VASE: Colour = (0.15, 0.70, 0.75)
WALLS: Colour = (0.85, 0.65, 0.15)
ROBOT: Colour = (0.94, 0.35, 0.16)


class Scene(NamedTuple):
    robot: str
    qpos: np.ndarray
    """[nq] the model's coordinates"""
    robot_xy: np.ndarray
    """[2]"""
    robot_yaw: float
    discs: list[tuple[np.ndarray, float, float, Colour]]
    """Flat round things: centre [2], radius, height, colour."""
    vases: list[tuple[np.ndarray, float]]
    """Centre [2] and yaw of each vase."""
    walls: list[tuple[np.ndarray, np.ndarray]]
    """Centre [2] and half sizes [2] of each wall; none of them collides."""
    ring: float
    """Radius of the circle to run along, 0 where there is none."""
    lidars: list[tuple[np.ndarray, Colour]]
    """Closeness [16] and colour of each lidar, innermost first."""
    half: float
    """Half side of the square that shows it all."""


def describe(rules: Rules, qpos: np.ndarray, game: Any, observation: np.ndarray) -> Scene:
    """The scene of one world: `qpos` [nq], its `GoalState` or `CircleState`, its observation [O]."""
    robot, boxes = qpos[: rules.robot.nq], qpos[rules.robot.nq :].reshape(-1, 7)
    yaw = float(robot[2]) if rules.robot.name == "Point" else turn(robot[3:7])
    lidars = observation[rules.robot.sensor_size :].reshape(-1, BINS)
    discs: list[tuple[np.ndarray, float, float, Colour]] = []
    walls: list[tuple[np.ndarray, np.ndarray]] = []
    if isinstance(rules.game, Goal):
        discs = [(np.asarray(xy), 0.2, 0.01, HAZARD) for xy in np.asarray(game.hazards_xy)]
        discs.append((np.asarray(game.goal_xy), 0.3, 0.08, GOAL))
        half, ring = rules.game.placement.half + 0.4, 0.0
    else:
        across = [(np.array([side * WALL, 0.0]), np.array([0.02, 1.75])) for side in (-1, 1)]
        along = [(np.array([0.0, side * WALL]), np.array([1.75, 0.02])) for side in (-1, 1)]
        walls = [[], across, across + along][rules.game.level]
        half, ring = 1.9, RADIUS
    return Scene(
        robot=rules.robot.name,
        qpos=qpos,
        robot_xy=robot[:2],
        robot_yaw=yaw,
        discs=discs,
        vases=[(box[:2], turn(box[3:7])) for box in boxes],
        walls=walls,
        ring=ring,
        lidars=list(zip(lidars, (GOAL, HAZARD, VASE), strict=False)),
        half=half,
    )


def turn(quaternion: np.ndarray) -> float:
    """The yaw of a quaternion [4], w first."""
    w, x, y, z = quaternion
    return float(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
