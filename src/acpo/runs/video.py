"""Episodes side by side as a video: what the policy does, what it has cost, when it costs."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from acpo.errors import UserError
from acpo.runs import simulators
from acpo.runs.evaluation import FRESH
from acpo.runs.policy import TrainedPolicy, act
from acpo.runs.simulators import Source
from acpo.tasks.base import HostTask

SIDE_BY_SIDE = 3
SIZE = 320
CAPTION = 40
STRIDE = 2
"""Control steps between frames."""
FLASH = (200, 30, 30)
FROM_ABOVE = (
    "Drawn from above, because MuJoCo finds no graphics here; libegl1 or libosmesa6 would give it some."
)
GO1 = "Go1"
"""The task that brings its own viewer."""


class Film(NamedTuple):
    """What was made."""

    video: Path
    still: Path
    note: str
    """A sentence on what the picture lacks; empty where it lacks nothing."""


def check(source: Source, path: Path) -> None:
    """Refuse what cannot be filmed or written, before anybody waits for an evaluation."""
    if path.suffix.lower() != ".mp4":
        raise UserError(f"--video writes mp4 files, so its name should end in .mp4: {path}.")
    if path.is_dir():
        raise UserError(f"Cannot write {path}: it is a directory.")
    if not path.parent.is_dir():
        raise UserError(f"There is no directory {path.parent} to write the video to.")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"Cannot write to {path.parent}: Permission denied.")
    if source.name == GO1:
        return
    task: Any = simulators.for_evaluation(source, 1)
    try:
        if not hasattr(task, "render"):
            raise UserError(f"{source.name} has no picture of itself, so there is nothing to film.")
    finally:
        _close(task, source)


def record(
    source: Source, policy: TrainedPolicy, path: Path, budgets: tuple[float, ...], seed: int = 0
) -> Film:
    """Write a video and, beside it, a still from the middle."""
    check(source, path)
    if source.name == GO1:
        return Film(*_write(_go1(policy, budgets, FRESH + seed), path, 25), "")
    task: Any = simulators.for_evaluation(source, SIDE_BY_SIDE)
    try:
        top = _must_look_from_above(task, FRESH + seed)
        rate = int(getattr(task, "frames_per_second", 50))
        frames = _frames(task, policy, budgets, FRESH + seed, top=top)
        made = _write(frames, path, max(1, rate // STRIDE))
    finally:
        _close(task, source)
    return Film(*made, FROM_ABOVE if top else "")


def _frames(
    task: Any, policy: TrainedPolicy, budgets: tuple[float, ...], seed: int, top: bool
) -> Iterator[np.ndarray]:
    """Pictures [H, W, 3] until every environment has finished one episode."""
    seen = np.asarray(task.reset(seed).observation, np.float32)
    envs = task.num_envs
    sums = np.zeros((envs, 1 + len(policy.spec.costs)))
    over = np.zeros(envs, bool)
    lit = np.zeros(envs, bool)
    tiles: list[Image.Image] = [Image.new("RGB", (SIZE, SIZE + CAPTION))] * envs
    step = 0
    while not over.all():
        if step % STRIDE == 0:
            for i in np.flatnonzero(~over):
                picture = task.render(int(i), top=top, size=SIZE)
                tiles[i] = _tile(picture, sums[i], policy.spec.costs, budgets, bool(lit[i]))
            lit[:] = False
            yield np.concatenate([np.asarray(tile) for tile in tiles], axis=1)
        actions = np.asarray(act(policy.policy, policy.normaliser, jnp.asarray(seen), None))
        result = task.step(actions)
        running = ~over
        sums[running, 0] += np.asarray(result.reward)[running]
        sums[running, 1:] += np.asarray(result.costs)[running]
        lit |= np.any(np.asarray(result.costs) > 0, axis=1)
        over |= np.asarray(result.terminated) | np.asarray(result.truncated)
        seen = np.asarray(result.observation, np.float32)
        step += 1


def _must_look_from_above(task: Any, seed: int) -> bool:
    """Whether this machine cannot draw in perspective; the view from above needs no graphics."""
    task.reset(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            task.render(0, top=False, size=SIZE)
    except Exception:
        return True
    return False


def _close(task: Any, source: Source) -> None:
    if isinstance(task, HostTask) and source.fixed_envs is None:
        task.close()


def _tile(
    picture: np.ndarray, sums: np.ndarray, costs: Sequence[str], budgets: Sequence[float], lit: bool
) -> Image.Image:
    """A picture over its sums so far, framed in red while it costs."""
    tile = Image.new("RGB", (SIZE, SIZE + CAPTION), "white")
    tile.paste(Image.fromarray(np.asarray(picture, np.uint8)), (0, CAPTION))
    draw = ImageDraw.Draw(tile)
    words = [f"reward {sums[0]:.1f}"]
    for k, name in enumerate(costs):
        limit = f" of {budgets[k]:g}" if k < len(budgets) else ""
        words.append(f"{name} {sums[1 + k]:.1f}{limit}")
    draw.text(
        (8, 4), "\n".join([words[0], "  ".join(words[1:])]), fill="black", font=ImageFont.load_default(14)
    )
    if lit:
        draw.rectangle((0, CAPTION, SIZE - 1, SIZE + CAPTION - 1), outline=FLASH, width=8)
    return tile


def _go1(policy: TrainedPolicy, budgets: tuple[float, ...], seed: int) -> Iterator[np.ndarray]:
    """The quadruped's own viewer: one robot on a tour of commands."""
    from acpo.tasks import registry  # noqa: PLC0415
    from acpo.tasks.quadruped import viewer  # noqa: PLC0415

    task: Any = registry.make(GO1, 1, "native", evaluation=True)
    try:
        recording = viewer.record(task, lambda o: np.asarray(policy(o)), seed=seed)
        yield from viewer.frames(recording, task.config, budgets or (2.0,) * len(policy.spec.costs))
    finally:
        task.close()


def _write(frames: Iterator[np.ndarray], path: Path, rate: int) -> tuple[Path, Path]:
    """The files appear when they are whole; what stood there before stays until then."""
    import imageio.v2 as imageio  # noqa: PLC0415

    still = path.with_suffix(".png")
    kept: list[np.ndarray] = []
    try:
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=path.parent) as folder:
            partial = Path(folder) / path.name
            # The encoder is a process of its own that runs nothing of JAX.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
                options: Any = {"fps": rate, "macro_block_size": 1, "codec": "libx264", "quality": 7}
                writer: Any = imageio.get_writer(partial, **options)
                with writer:
                    for count, frame in enumerate(frames):
                        # libx264 needs even sides.
                        even = frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2]
                        writer.append_data(even)
                        if count % 10 == 0:
                            kept.append(even)
            imageio.imwrite(still, kept[len(kept) // 2])
            os.replace(partial, path)
    except OSError as error:
        raise UserError(f"Cannot write {path}: {_first_line(error)}.") from error
    return path, still


def _first_line(error: OSError) -> str:
    return error.strerror or (str(error).strip().splitlines() or ["the encoder failed"])[0].rstrip(".")
