"""A picture from above in NumPy alone: fast, and no graphics library is needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from acpo.tasks.navigation.lidar import BINS
from acpo.tasks.navigation.scene import ROBOT, VASE, WALLS, Colour, Scene

PAPER: Colour = (0.96, 0.96, 0.94)
GRID: Colour = (0.88, 0.88, 0.86)
DARK: Colour = (0.20, 0.20, 0.22)

# Boxes (centre, half sizes, colour) and discs (centre, radius, colour) of a robot seen from above.
BOXES: dict[str, list[tuple[tuple[float, float], tuple[float, float], Colour]]] = {
    "Point": [((0.1, 0.0), (0.05, 0.05), ROBOT)],
    "Car": [
        ((-0.13, 0.1), (0.025, 0.05), DARK),
        ((0.13, 0.1), (0.025, 0.05), DARK),
        ((0.0, 0.0), (0.1, 0.1), ROBOT),
        ((0.0, 0.15), (0.1, 0.01), ROBOT),
        ((0.0, 0.125), (0.01, 0.025), ROBOT),
        ((0.0, -0.165), (0.05, 0.01), ROBOT),
        ((0.0, -0.13), (0.05, 0.03), ROBOT),
    ],
}
DISCS: dict[str, list[tuple[tuple[float, float], float, Colour]]] = {
    "Point": [((0.0, 0.0), 0.1, ROBOT)],
    "Car": [((0.0, -0.1), 0.03, DARK)],
}


class Canvas:
    """An image of the square of half side `half` about `centre`, y up; shapes have soft edges."""

    def __init__(self, size: int, centre: np.ndarray, half: float) -> None:
        self.pixel = 2 * half / size
        steps = (np.arange(size) + 0.5) * self.pixel - half
        self.x = (centre[0] + steps)[None, :]
        self.y = (centre[1] - steps)[:, None]
        self.image = np.tile(np.array(PAPER, np.float32), (size, size, 1))

    def disc(self, centre: np.ndarray, radius: float, colour: Colour, alpha: float = 1.0) -> None:
        self._fill(centre, radius, lambda x, y: np.hypot(x, y) - radius, colour, alpha)

    def ring(self, centre: np.ndarray, radius: float, width: float, colour: Colour) -> None:
        extent = radius + width / 2
        self._fill(centre, extent, lambda x, y: np.abs(np.hypot(x, y) - radius) - width / 2, colour)

    def box(
        self, centre: np.ndarray, half: tuple[float, float] | np.ndarray, yaw: float, colour: Colour
    ) -> None:
        c, s = np.cos(yaw), np.sin(yaw)

        def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.maximum(np.abs(c * x + s * y) - half[0], np.abs(c * y - s * x) - half[1])

        self._fill(centre, float(np.hypot(half[0], half[1])), distance, colour)

    def grid(self, colour: Colour) -> None:
        """A line at every metre."""
        for values in (self.x[0], self.y[:, 0]):
            lines = np.abs(values - np.round(values)) < self.pixel / 2
            self.image[:, lines] = colour
            self.image = self.image.swapaxes(0, 1)

    def _fill(
        self,
        centre: np.ndarray,
        extent: float,
        distance: Callable[[np.ndarray, np.ndarray], np.ndarray],
        colour: Colour,
        alpha: float = 1.0,
    ) -> None:
        """Blend `colour` in where the signed `distance` to a shape's edge, a function of the place
        relative to its centre, is negative; the shape lies within `extent` of the centre."""
        across, down = self.x[0] - centre[0], self.y[:, 0] - centre[1]
        columns = np.flatnonzero(np.abs(across) <= extent + self.pixel)
        rows = np.flatnonzero(np.abs(down) <= extent + self.pixel)
        if not (columns.size and rows.size):
            return
        window = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        edge = distance(across[window[1]][None, :], down[window[0]][:, None])
        cover = (alpha * np.clip(0.5 - edge / self.pixel, 0.0, 1.0))[..., None].astype(np.float32)
        self.image[window] += cover * (np.array(colour, np.float32) - self.image[window])

    def pixels(self) -> np.ndarray:
        """[n, n, 3] uint8"""
        return np.round(np.clip(self.image, 0.0, 1.0) * 255).astype(np.uint8)


def top_down(scene: Scene, size: int = 320) -> np.ndarray:
    """[size, size, 3] uint8, world x to the right and y up; the frame follows a robot that leaves."""
    room = scene.half - 0.4
    centre = scene.robot_xy - np.clip(scene.robot_xy, -room, room)
    canvas = Canvas(size, centre, scene.half)
    canvas.grid(GRID)
    if scene.ring:
        canvas.ring(np.zeros(2), scene.ring, 0.03, scene.lidars[0][1])
    for place, half_sizes in scene.walls:
        canvas.box(place, half_sizes, 0.0, WALLS)
    for place, radius, _, colour in scene.discs:
        canvas.disc(place, radius, colour, 0.55)
    for place, yaw in scene.vases:
        canvas.box(place, (0.1, 0.1), yaw, VASE)
    _robot(canvas, scene)
    _lidars(canvas, scene)
    return canvas.pixels()


def _robot(canvas: Canvas, scene: Scene) -> None:
    c, s = np.cos(scene.robot_yaw), np.sin(scene.robot_yaw)
    to_world = np.array([[c, -s], [s, c]])
    for place, half_sizes, colour in BOXES[scene.robot]:
        canvas.box(scene.robot_xy + to_world @ place, half_sizes, scene.robot_yaw, colour)
    for place, radius, colour in DISCS[scene.robot]:
        canvas.disc(scene.robot_xy + to_world @ place, radius, colour)


def _lidars(canvas: Canvas, scene: Scene) -> None:
    """One ring of dots for each lidar; a dot is as solid as its target is close."""
    for i, (closeness, colour) in enumerate(scene.lidars):
        for b in np.flatnonzero(closeness > 0):
            angle = scene.robot_yaw + (b + 0.5) * 2 * np.pi / BINS
            place = scene.robot_xy + (0.26 + 0.07 * i) * np.array([np.cos(angle), np.sin(angle)])
            canvas.disc(place, 0.03, colour, float(closeness[b]))
