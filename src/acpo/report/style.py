"""How pictures look: readable in print, in grey, and by people who see few colours.

Lines differ in colour, in dash and in lightness; bands and stages differ in lightness alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

COLOURS = ("#1b1b1b", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#7a7a7a")
DASHES = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (9, 3)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
STAGE_SHADES = ("#ffffff", "#d9d9d9", "#a6a6a6")
"""max-reward, min-cost, projection"""
LABEL = 24
"""Characters of a name in one line of a legend."""

_RC: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "acpo",
}


def line_style(index: int) -> dict[str, Any]:
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 1.6,
    }


def mark_style(index: int) -> dict[str, Any]:
    """Colour and marker; with more than eight, the same colour comes with another marker."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[(index + index // len(COLOURS)) % len(MARKERS)],
    }


def marks(index: int, count: int, points: int) -> dict[str, Any]:
    """A few markers along one of several lines, so that grey print still tells them apart."""
    if count == 1:
        return {}
    spacing = max(1, points // 6)
    first = spacing * (index % count) // count
    return {"marker": mark_style(index)["marker"], "markersize": 4, "markevery": (first, spacing)}


def wrap(label: str) -> str:
    """A long name in several lines, broken where names have joints."""
    parts = re.split(r"(?<=[ :/._-])", label)
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > LABEL:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def legend_below(figure: Figure, handles: list[Any], labels: list[str]) -> None:
    """As many columns as the figure is wide enough for."""
    longest = max(len(line) for label in labels for line in label.splitlines())
    width, height = figure.get_size_inches()
    columns = max(1, min(len(labels), int(width * 72 / (42 + 4.7 * longest))))
    rows = [labels[first::columns] for first in range(columns)]
    lines = max(sum(label.count("\n") + 1 for label in row) for row in rows)
    # The panels keep their size however long the legend is.
    figure.set_size_inches(width, height + 0.2 * (lines - 1))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


@contextmanager
def styled() -> Iterator[None]:
    with rc_context(_RC):
        yield


def panels(count: int, width: float = 3.6, height: float = 2.8, columns: int = 4) -> tuple[Figure, list[Any]]:
    """A figure with `count` axes in rows of at most `columns`."""
    columns = min(count, columns)
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for empty in grid[count:]:
        empty.set_axis_off()
    return figure, grid[:count]


def panels_above(
    picture: Any, count: int, width: float = 3.6, height: float = 2.8
) -> tuple[Figure, list[Any]]:
    """A row of `count` axes over a picture [H, W, 3] as wide as they are together."""
    across = width * count
    below = across * picture.shape[0] / picture.shape[1]
    figure = Figure(figsize=(across, height + below), layout="constrained")
    grid = figure.add_gridspec(2, count, height_ratios=(height, below))
    axes = [figure.add_subplot(grid[0, k]) for k in range(count)]
    under = figure.add_subplot(grid[1, :])
    under.imshow(picture, interpolation="lanczos")
    under.set_axis_off()
    return figure, axes


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    figure.set_dpi(150)
    # Some of the style takes effect only now: text stays text, and equal numbers give equal files.
    with styled():
        figure.savefig(png, dpi=150)
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
    return [png, svg]
