"""Pictures: what they draw from, and that nothing is cut off however much there is to show."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from acpo.config import Config
from acpo.problem import STAGE_NAMES
from acpo.report import curves, style
from acpo.report.curves import Curve
from acpo.runs.metrics import Table, cost_column
from acpo.tasks.base import Box, TaskSpec

GO1 = (
    "ang_vel_xy",
    "lin_vel_z",
    "orientation",
    "torso_height",
    "joint_pos",
    "joint_vel",
    "joint_torque",
    "action",
)
LONG = "acpo-lag my_package.my_environment:make_two_costs_and_a_half"


def table(costs=("hazards",), seed=0, length=40, scale=1.0) -> Table:
    t = np.arange(1, length + 1)
    columns = {
        "iteration": t,
        "seed": np.full(length, seed),
        "steps": 1000.0 * t,
        "reward": scale * np.log(t),
    }
    for cost in costs:
        columns[cost_column(cost)] = scale * (20 + 30 / t)
        columns[f"budget_{cost}"] = np.maximum(50 - t, 25.0)
    columns["reward_budget"] = np.where(t > 10, 3.0, 0.0)
    columns["stage"] = np.array(STAGE_NAMES)[t // 5 % 3]
    return Table({name: np.asarray(column) for name, column in columns.items()})


def assert_nothing_is_cut_off(figure: Figure) -> None:
    """Every word and every axis lies within the page, and no panel became a sliver."""
    figure.set_dpi(80)
    figure.draw_without_rendering()
    page = figure.bbox
    boxes = [axis.get_tightbbox() for axis in figure.axes]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    for box in boxes:
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1
    for axis in figure.axes:
        extent = axis.get_window_extent()
        assert extent.height > 90 and extent.width > 130


def curve(label, costs=("hazards",), seeds=3, budgets=(25.0,), **more) -> Curve:
    return Curve(label, [table(costs, seed, **more) for seed in range(seeds)], costs, budgets)


@pytest.mark.parametrize(
    "shown",
    [
        [curve("acpo", seeds=1)],
        [curve(name, seeds=5) for name in ("acpo", "ipo", "ipo-c", "ppo-lag", "cpo", "crpo", "ppo", LONG)],
        [curve(name, GO1, budgets=(25.0,) * 8) for name in ("acpo", "ipo", LONG)],
        [curve("acpo"), curve("ppo", budgets=(), scale=30.0)],
        [curve("none", costs=(), budgets=())],
    ],
    ids=["one seed", "many runs", "eight costs", "a baseline far above", "no cost"],
)
def test_learning_curves_fit_their_page(shown):
    figure = curves.learning_curves(shown)
    assert len(figure.axes) >= 1 + len(shown[0].costs)
    used = [axis for axis in figure.axes if axis.axison]
    assert len(used[0].lines) == len(shown)
    assert len(used) == 1 + len(shown[0].costs)
    hidden = [axis for axis in figure.axes if not axis.axison]
    for axis in hidden:
        axis.remove()
    assert_nothing_is_cut_off(figure)


@pytest.mark.parametrize("costs", [("hazards",), GO1], ids=["one cost", "eight costs"])
def test_the_path_of_the_budgets_fits_its_page(costs):
    figure = curves.budget_path(table(costs), costs, (25.0,) * len(costs), "acpo on Go1, seed 0")
    assert len(figure.axes) == len(costs) + 1
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["measured", "budget d", "budget g", *(f"stage {name}" for name in STAGE_NAMES)]
    assert_nothing_is_cut_off(figure)


def test_stages_are_shaded_where_they_were():
    """Iterations 1 to 4 in max-reward, 5 to 9 in min-cost, 10 to 14 in projection, each 1000 steps."""
    figure = curves.budget_path(table(length=14), ("hazards",), (25.0,), "")
    shades = [(p.get_x(), p.get_x() + p.get_width()) for p in figure.axes[0].patches]
    assert shades == [(4000.0, 9000.0), (9000.0, 14000.0)]


def test_the_budgets_drawn_are_those_measured():
    figure = curves.budget_path(table(), ("hazards",), (25.0,), "")
    cost, reward = figure.axes
    drawn = {line.get_label(): line.get_ydata() for line in (*cost.lines, *reward.lines)}
    np.testing.assert_array_equal(drawn["budget d"], table()["budget_hazards"])
    assert drawn["budget g"].tolist() == [3.0] * 30


def test_a_run_without_limits_has_no_path():
    free = table()
    free = Table(
        {name: free[name] if name != "budget_hazards" else np.full(40, np.inf) for name in free.columns}
    )
    assert curves.budget_path(free, ("hazards",), (), "ppo") is None


def test_a_picture_may_stand_below():
    still = np.zeros((36, 96, 3), np.uint8)
    figure = curves.budget_path(table(), ("hazards",), (25.0,), "demo", still)
    assert len(figure.axes) == 3 and figure.axes[2].images
    assert_nothing_is_cut_off(figure)


@pytest.mark.parametrize(
    "names", [("acpo",), ("acpo", "ipo", "ipo-c", "ppo-lag", "cpo", "crpo", "ppo", "trpo", LONG)]
)
def test_the_plane_fits_its_page(names):
    rng = np.random.default_rng(0)
    points = [(name, rng.normal(20, 3, 5), rng.normal(25, 9, 5)) for name in names]
    figure = curves.plane(points, 25.0, "hazards")
    assert_nothing_is_cut_off(figure)
    assert figure.axes[0].get_window_extent().width > 200


def test_pareto_by_hand():
    """(reward, cost): b is beaten by a, d by c and by e; a and its equal stand."""
    points = {"a": (3, 1), "b": (2, 1), "c": (5, 4), "d": (4, 5), "e": (5, 4), "f": (9, 9)}
    rewards, costs = np.array(list(points.values())).T
    assert [list(points)[i] for i in curves.pareto(rewards, costs)] == ["a", "c", "e", "f"]


def test_smoothing_never_looks_ahead():
    assert curves.smooth(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist() == [1, 2, 4, 6]


def test_seeds_are_compared_where_all_have_been():
    shown = Curve("acpo", [table(length=7), table(length=5)], ("hazards",), (25.0,))
    steps, values = shown.over_seeds("reward")
    assert steps.tolist() == [1000, 2000, 3000, 4000, 5000] and values.shape == (2, 5)


def test_lines_differ_without_their_colours():
    looks = [style.line_style(k) | style.marks(k, 12, 60) for k in range(12)]
    assert len({(str(look["linestyle"]), look["marker"]) for look in looks}) == 12
    marks = [(mark["color"], mark["marker"]) for mark in map(style.mark_style, range(16))]
    assert len(set(marks)) == 16


def test_long_names_break_at_their_joints():
    assert style.wrap("acpo") == "acpo"
    assert style.wrap(LONG).replace("\n", "").replace(" ", "") == LONG.replace(" ", "")
    assert max(map(len, style.wrap(LONG).splitlines())) <= style.LABEL


def test_the_pictures_of_a_run_are_written_twice_and_alike(tmp_path):
    spec = TaskSpec("walk", 2, Box(1), ("hazards",), 10)
    written = curves.draw_run(table(), Config(budget=(25.0,)), spec, tmp_path)
    assert {path.name for path in written} == {
        "learning.png", "learning.svg", "budgets_seed0.png", "budgets_seed0.svg"
    }  # fmt: skip
    before = {path: path.read_bytes() for path in written}
    curves.draw_run(table(), Config(budget=(25.0,)), spec, tmp_path)
    assert {path: path.read_bytes() for path in written} == before
    # Words stay words, so that a paper's own font can be put in.
    assert b">reward per episode</text>" in before[tmp_path / "learning.svg"]
