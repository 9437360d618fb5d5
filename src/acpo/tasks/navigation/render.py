"""A picture by MuJoCo's renderer, with what is not a body drawn in: hazards, goal, walls, lidar."""

from __future__ import annotations

import atexit
from typing import Any

import mujoco
import numpy as np

from acpo.physics.graphics import open_renderer
from acpo.tasks.navigation.lidar import BINS
from acpo.tasks.navigation.scene import WALLS, Colour, Scene

CYLINDER, BOX, SPHERE = (
    mujoco.mjtGeom.mjGEOM_CYLINDER,
    mujoco.mjtGeom.mjGEOM_BOX,
    mujoco.mjtGeom.mjGEOM_SPHERE,
)


class Painter:
    """Draws worlds of one model; keeps the graphics context between pictures."""

    def __init__(self, model: mujoco.MjModel, width: int = 480, height: int = 480) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._renderer = open_renderer(model, width, height)
        atexit.register(self.close)  # while the graphics library is still there
        self._camera = mujoco.MjvCamera()
        self._camera.azimuth, self._camera.elevation = 90.0, -55.0

    def paint(self, scene: Scene) -> np.ndarray:
        """[height, width, 3] uint8"""
        self._data.qpos[:] = scene.qpos
        mujoco.mj_forward(self._model, self._data)
        self._camera.distance = 2.9 * scene.half
        room = scene.half - 0.4
        self._camera.lookat[:2] = scene.robot_xy - np.clip(scene.robot_xy, -room, room)
        self._renderer.update_scene(self._data, self._camera)
        for centre, radius, height, colour in scene.discs:
            self._add(CYLINDER, (radius, height, 0.0), (*centre, height), colour, alpha=0.4)
        for centre, half in scene.walls:
            self._add(BOX, (*half, 0.15), (*centre, 0.15), WALLS, alpha=0.5)
        if scene.ring:
            self._ring(scene)
        self._lidars(scene)
        return self._renderer.render().copy()

    def _ring(self, scene: Scene) -> None:
        """The circle as a closed row of short bars on the floor."""
        bars = 72
        for angle in np.arange(bars) * 2 * np.pi / bars:
            c, s = np.cos(angle), np.sin(angle)
            turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
            size = (0.015, np.pi * scene.ring / bars, 0.005)
            self._add(
                BOX, size, (scene.ring * c, scene.ring * s, 0.005), scene.lidars[0][1], alpha=1.0, turn=turn
            )

    def _lidars(self, scene: Scene) -> None:
        """A ring of beads above the robot for each lidar, as solid as its target is close."""
        for i, (closeness, colour) in enumerate(scene.lidars):
            for b, value in enumerate(closeness):
                angle = scene.robot_yaw + (b + 0.5) * 2 * np.pi / BINS
                x, y = scene.robot_xy + 0.2 * np.array([np.cos(angle), np.sin(angle)])
                self._add(
                    SPHERE, (0.025,) * 3, (x, y, 0.35 + 0.07 * i), colour, alpha=0.08 + 0.92 * float(value)
                )

    def _add(
        self,
        shape: Any,
        size: tuple[float, ...],
        place: tuple[float, ...],
        colour: Colour,
        *,
        alpha: float,
        turn: np.ndarray | None = None,
    ) -> None:
        scene = self._renderer.scene
        if scene.ngeom >= scene.maxgeom:
            return
        mujoco.mjv_initGeom(
            scene.geoms[scene.ngeom],
            int(shape),
            np.array(size, float),
            np.array(place, float),
            (np.eye(3) if turn is None else turn).ravel(),
            np.array([*colour, alpha], np.float32),
        )
        scene.ngeom += 1

    def close(self) -> None:
        atexit.unregister(self.close)
        self._renderer.close()
