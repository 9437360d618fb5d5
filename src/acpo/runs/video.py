"""Episodes side by side as a video: what the policy does, what it has cost, when it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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


def record(
    source: Source, policy: TrainedPolicy, path: Path, budgets: tuple[float, ...], seed: int = 0
) -> tuple[Path, Path]:
    """Write a video and, beside it, a still from the middle; gives both paths."""
    if path.suffix.lower() != ".mp4":
        raise UserError(f"--video writes mp4 files, so its name should end in .mp4: {path}.")
    if not path.parent.is_dir():
        raise UserError(f"There is no directory {path.parent} to write the video to.")
    if source.name == "Go1":
        return _write(_go1(source, policy, budgets), path, 25)
    task: Any = simulators.for_evaluation(source, SIDE_BY_SIDE)
    try:
        if not hasattr(task, "render"):
            raise UserError(f"{source.name} has no picture of itself, so there is nothing to film.")
        rate = int(getattr(task, "frames_per_second", 50))
        return _write(_frames(task, policy, budgets, FRESH + seed), path, max(1, rate // STRIDE))
    finally:
        if isinstance(task, HostTask):
            task.close()


def _frames(task: Any, policy: TrainedPolicy, budgets: tuple[float, ...], seed: int) -> Iterator[np.ndarray]:
    """Pictures [H, W, 3] until every environment has finished one episode."""
    top = _needs_top(task, seed)
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


def _needs_top(task: Any, seed: int) -> bool:
    """Whether this machine cannot draw in perspective; the view from above needs no graphics."""
    task.reset(seed)
    try:
        task.render(0, top=False, size=SIZE)
    except Exception:
        return True
    return False


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


def _go1(source: Source, policy: TrainedPolicy, budgets: tuple[float, ...]) -> Iterator[np.ndarray]:
    """The quadruped's own viewer: one robot on a tour of commands."""
    from acpo.tasks import registry  # noqa: PLC0415
    from acpo.tasks.quadruped import viewer  # noqa: PLC0415

    task: Any = registry.make(source.name, 1, "native", evaluation=True)
    recording = viewer.record(task, lambda o: np.asarray(policy(o)), seed=FRESH)
    return viewer.frames(recording, task.config, budgets or (2.0,) * len(policy.spec.costs))


def _write(frames: Iterator[np.ndarray], path: Path, rate: int) -> tuple[Path, Path]:
    import imageio.v2 as imageio  # noqa: PLC0415

    still = path.with_suffix(".png")
    kept: list[np.ndarray] = []
    writer: Any = imageio.get_writer(path, fps=rate, macro_block_size=1, codec="libx264", quality=7)
    with writer:
        for count, frame in enumerate(frames):
            # libx264 needs even sides.
            even = frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2]
            writer.append_data(even)
            if count % 50 == 0:
                kept.append(even)
    imageio.imwrite(still, kept[len(kept) // 2])
    return path, still
