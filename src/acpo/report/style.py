"""How pictures look: readable in print, in grey, and by people who see few colours.

Lines differ in colour, in dash and in lightness; bands and stages differ in lightness alone.
"""

from __future__ import annotations

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
    # Equal numbers give equal files.
    "svg.hashsalt": "acpo",
}


def line_style(index: int) -> dict[str, Any]:
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "linewidth": 1.6,
    }


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


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    figure.set_dpi(150)
    figure.savefig(png, dpi=150)
    FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
    return [png, svg]
