"""Pictures of a Go1 at work: the robot with its command, contacts against the gait, costs so far.

    recording = record(task, policy, steps)          # numbers, cheap to keep
    for image in frames(recording, task.config): ... # [H, W, 3] uint8, 25 a second

Without a screen MuJoCo draws through EGL (Debian: libegl1, libegl-mesa0, libgl1-mesa-dri) or, with
MUJOCO_GL=osmesa, through libosmesa6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from acpo.errors import UserError
from acpo.physics.graphics import open_renderer
from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.costs import COSTS
from acpo.tasks.quadruped.model import FEET, LEGS, build_model
from acpo.tasks.quadruped.native import Go1Native
from acpo.tasks.quadruped.observation import touching

Policy = Callable[[np.ndarray], np.ndarray]
"""Observations [B, 72] to actions [B, 12]."""

TOUR: tuple[tuple[int, tuple[float, float, float]], ...] = (
    (0, (0.0, 0.0, 0.0)),
    (100, (0.8, 0.0, 0.0)),
    (300, (0.0, 0.4, 0.0)),
    (450, (0.0, -0.4, 0.0)),
    (600, (0.0, 0.0, 0.8)),
    (750, (0.5, 0.0, -0.8)),
    (900, (-0.5, 0.0, 0.0)),
)
"""Commands by the control step they start at: stand, forward, left, right, turn, curve, back."""

FRAME_STEPS = 2
"""Control steps in one picture: 25 pictures a second."""
WINDOW = 100
"""Control steps shown in the gait strip: 2 s."""


class Recording(NamedTuple):
    """One episode of one robot over T control steps."""

    qpos: np.ndarray
    """[T, 19]"""
    velocity: np.ndarray
    """[T, 3] forward, left (m/s) and turn (rad/s), body frame"""
    command: np.ndarray
    """[T, 3]"""
    schedule: np.ndarray
    """[T, 4] desired contact, 1 for stance"""
    contact: np.ndarray
    """[T, 4] bool: feet that carry load"""
    costs: np.ndarray
    """[T, 8] as emitted"""
    reward: np.ndarray
    """[T] the paper's R"""


def record(
    task: Go1Native,
    policy: Policy,
    steps: int = 1000,
    seed: int = 0,
    commands: Sequence[tuple[int, tuple[float, float, float]]] | None = TOUR,
) -> Recording:
    """Let `policy` walk `task` and keep what its first robot did, until its episode ends.

    `commands` overrides the task's own draws; None keeps them. Build the task for it with
    `make(1, "native", evaluation=True)`.
    """
    observation = np.array(task.reset(seed).observation)
    script = dict(commands or ())
    current: tuple[float, float, float] | None = None
    rows: list[tuple[Any, ...]] = []
    for step in range(steps):
        current = script.get(step, current)
        if current is not None:
            task.set_commands(np.tile(np.asarray(current), (task.num_envs, 1)))
            observation[:, 69:72] = task.config.command_scale * np.asarray(current)
        command = task.commands()[:1].copy()
        result = task.step(policy(observation))
        ended = bool(result.terminated[0] or result.truncated[0])
        if ended:
            # The physics has moved on to the next episode; its picture would not be of this one.
            break
        reading = task.reading()
        rows.append(
            (
                task.physics.batch.bind("qpos")[0].copy(),
                np.array([*reading.linear_velocity[0, :2], reading.angular_velocity[0, 2]]),
                command[0],
                task.schedule()[0],
                np.asarray(touching(task.config, reading))[0],
                result.costs[0],
                result.reward[0] / task.config.reward_scale - task.config.reward_offset,
            )
        )
        observation = np.array(result.observation)
    if not rows:
        raise UserError("The robot fell in its first step: there is nothing to show.")
    return Recording(*(np.stack(column) for column in zip(*rows, strict=True)))


def frames(
    recording: Recording,
    config: Go1Config,
    budgets: Sequence[float] = (2.0,) * len(COSTS),
    *,
    width: int = 800,
    scene_height: int = 450,
    strip_height: int = 270,
    every: int = FRAME_STEPS,
) -> Iterator[np.ndarray]:
    """Pictures [scene_height + strip_height, width, 3] of a recording, uint8."""
    model = build_model(config)
    data = mujoco.MjData(model)
    strip = _Strip(recording, budgets, width, strip_height)
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    camera.trackbodyid = model.body("trunk").id
    camera.distance, camera.azimuth, camera.elevation = 1.9, 120.0, -22.0
    with open_renderer(model, width, scene_height) as renderer:
        for step in range(0, len(recording.qpos), every):
            data.qpos[:] = recording.qpos[step]
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            # Software renderers spend most of their time on shadows.
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
            _draw_command(renderer.scene, data, recording.command[step], recording.velocity[step])
            _draw_feet(renderer.scene, data, recording.contact[step], recording.schedule[step])
            yield np.concatenate([renderer.render(), strip.draw(step)])


GREEN, BLUE, RED, WHITE = (0.1, 0.75, 0.3, 1), (0.15, 0.4, 0.95, 1), (0.9, 0.15, 0.1, 1), (1, 1, 1, 0.9)


def _draw_command(
    scene: mujoco.MjvScene, data: mujoco.MjData, command: np.ndarray, velocity: np.ndarray
) -> None:
    """Above the trunk: the command in green and what the robot does in blue; half a metre is 1 m/s.

    Turning is a thin arrow at the nose, across the body.
    """
    forward = data.body("trunk").xmat.reshape(3, 3)[:, 0] * [1, 1, 0]
    forward /= max(float(np.linalg.norm(forward)), 1e-6)
    left = np.array([-forward[1], forward[0], 0.0])
    trunk = data.body("trunk").xpos
    for height, what, colour in ((0.20, command, GREEN), (0.16, velocity, BLUE)):
        centre = trunk + np.array([0, 0, height])
        _arrow(scene, centre, 0.5 * (what[0] * forward + what[1] * left), 0.014, colour)
        _arrow(scene, centre + 0.25 * forward, 0.3 * what[2] * left, 0.007, colour)


def _draw_feet(scene: mujoco.MjvScene, data: mujoco.MjData, contact: np.ndarray, desired: np.ndarray) -> None:
    """A ball at each foot: green where contact agrees with the gait, red where not, white if undecided."""
    for index, foot in enumerate(FEET):
        agrees = contact[index] == (desired[index] > 0.5)
        undecided = 0.1 < desired[index] < 0.9
        colour = WHITE if undecided else GREEN if agrees else RED
        if (geom := _next_geom(scene)) is not None:
            mujoco.mjv_initGeom(
                geom,
                mujoco.mjtGeom.mjGEOM_SPHERE,
                np.full(3, 0.027),
                data.site(foot).xpos,
                np.eye(3).ravel(),
                np.asarray(colour, np.float32),
            )


def _arrow(
    scene: mujoco.MjvScene, start: np.ndarray, along: np.ndarray, width: float, colour: tuple[float, ...]
) -> None:
    if np.linalg.norm(along) < 0.04 or (geom := _next_geom(scene)) is None:
        return
    mujoco.mjv_initGeom(
        geom,
        mujoco.mjtGeom.mjGEOM_ARROW,
        np.zeros(3),
        np.zeros(3),
        np.eye(3).ravel(),
        np.asarray(colour, np.float32),
    )
    mujoco.mjv_connector(geom, mujoco.mjtGeom.mjGEOM_ARROW, width, start, start + along)


def _next_geom(scene: mujoco.MjvScene) -> mujoco.MjvGeom | None:
    if scene.ngeom >= scene.maxgeom:
        return None
    scene.ngeom += 1
    return scene.geoms[scene.ngeom - 1]


class _Strip:
    """The lower part of a picture: two seconds of contacts, and eight costs against their budgets."""

    def __init__(self, recording: Recording, budgets: Sequence[float], width: int, height: int) -> None:
        self._recording = recording
        self._budgets = np.asarray(budgets, float)
        self._totals = np.cumsum(recording.costs, axis=0)
        self._canvas = FigureCanvasAgg(Figure((width / 100, height / 100), dpi=100))
        gait, costs = self._canvas.figure.subplots(1, 2, width_ratios=(1.2, 1))
        self._canvas.figure.subplots_adjust(left=0.05, right=0.945, bottom=0.16, top=0.84, wspace=0.36)
        self._title = self._canvas.figure.text(0.01, 0.93, "", fontsize=8, family="monospace")

        empty = np.zeros((8, WINDOW, 3))
        self._image = gait.imshow(empty, aspect="auto", extent=(-WINDOW * 0.02, 0, 4, 0))
        gait.set_yticks(np.arange(4) + 0.5, LEGS, fontsize=8)
        gait.tick_params(axis="x", labelsize=7)
        gait.set_title("feet: gait asks (grey) over contact (green, red)", fontsize=8)
        gait.set_xlabel("seconds", fontsize=7, labelpad=1)
        lines = gait.hlines([1, 2, 3], -WINDOW * 0.02, 0, colors="white", linewidth=2)

        self._bars = costs.barh(np.arange(len(COSTS)), np.zeros(len(COSTS)), height=0.7)
        costs.set_yticks(np.arange(len(COSTS)), COSTS, fontsize=7)
        costs.invert_yaxis()
        costs.set_xlim(0, 1.5)
        bound = costs.axvline(1, color="black", linewidth=1)
        costs.set_xticks([0, 0.5, 1], ["0", "half", "budget"], fontsize=7)
        costs.set_title("cost of the episode so far / budget", fontsize=8)
        self._numbers = [costs.text(1.52, i, "", fontsize=7, va="center") for i in range(len(COSTS))]

        # Axes and labels are drawn once; a picture then costs a fifth.
        self._moving = [self._title, self._image, lines, *self._bars, bound, *self._numbers]
        for artist in self._moving:
            artist.set_animated(True)
        self._canvas.draw()
        self._still = self._canvas.copy_from_bbox(self._canvas.figure.bbox)

    def draw(self, step: int) -> np.ndarray:
        """[height, width, 3] as it stands after `step`."""
        recording, total = self._recording, self._totals[step]
        self._image.set_data(self._gait_image(step))
        for bar, number, used, value in zip(
            self._bars, self._numbers, total / self._budgets, total, strict=True
        ):
            bar.set_width(min(used, 1.5))
            bar.set_color("tab:red" if used > 1 else "tab:blue")
            number.set_text(f"{value:.2f}")
        command, velocity = recording.command[step], recording.velocity[step]
        self._title.set_text(
            f"{0.02 * (step + 1):5.1f} s   command {_signed(command)}   moves {_signed(velocity)}   "
            f"R mean {recording.reward[: step + 1].mean():+.2f}"
        )
        self._canvas.restore_region(self._still)
        for artist in self._moving:
            artist.draw(self._canvas.get_renderer())
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()

    def _gait_image(self, step: int) -> np.ndarray:
        """[8, WINDOW, 3]: for each foot a row of what is asked and a row of what is."""
        first = max(0, step + 1 - WINDOW)
        asked = self._recording.schedule[first : step + 1].T
        contact = self._recording.contact[first : step + 1].T
        image = np.ones((8, WINDOW, 3))
        now = asked.shape[1]
        image[0::2, WINDOW - now :] = 1 - 0.6 * asked[..., None]
        wrong = contact & (asked < 0.1)
        colour = np.where(wrong[..., None], (0.85, 0.2, 0.15), (0.15, 0.65, 0.3))
        image[1::2, WINDOW - now :] = np.where(contact[..., None], colour, 1.0)
        return image


def _signed(values: np.ndarray) -> str:
    return f"({values[0]:+.2f} {values[1]:+.2f} m/s {values[2]:+.2f} rad/s)"
