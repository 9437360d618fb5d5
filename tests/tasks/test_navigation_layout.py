"""Starting layouts: the rules of placement, and the original's distribution."""

from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

from acpo.tasks.navigation.goal import Goal
from acpo.tasks.navigation.layout import Layout, draw_goals

REFERENCE = Path(__file__).parents[1] / "data" / "layouts_Goal1.npz"


def sample(level: int, num: int, seed: int = 0) -> Layout:
    with jax.enable_x64(True):
        return Layout(*map(np.asarray, Goal(level).sample(jax.random.PRNGKey(seed), num)))


@pytest.fixture(scope="module")
def layouts() -> Layout:
    return sample(1, 12000)


def gaps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """[B, n, m] distances between points [B, n, 2] and [B, m, 2]."""
    return np.linalg.norm(a[:, :, None] - b[:, None], axis=-1)


def statistics(agent, goal, discarded, hazards, vase) -> dict[str, np.ndarray]:
    agent, goal, discarded, vase = (x[:, None] for x in (agent, goal, discarded, vase))
    found = {
        f"{name} {axis}": places[:, :, i].ravel()
        for name, places in {"agent": agent, "goal": goal, "discarded": discarded, "vase": vase}.items()
        for i, axis in enumerate("xy")
    }
    found |= {f"hazard{h} {axis}": hazards[:, h, i] for h in range(8) for i, axis in enumerate("xy")}
    between = gaps(hazards, hazards) + 100 * np.eye(8)
    return found | {
        "goal-agent": gaps(goal, agent).min((1, 2)),
        "goal-hazard": gaps(goal, hazards).min((1, 2)),
        "agent-hazard": gaps(agent, hazards).min((1, 2)),
        "hazard-hazard": between.min((1, 2)),
        "goal-vase": gaps(goal, vase).min((1, 2)),
        "vase-hazard": gaps(vase, hazards).min((1, 2)),
        "goal-discarded": gaps(goal, discarded).min((1, 2)),
    }


def test_the_distribution_is_the_originals(layouts):
    with np.load(REFERENCE) as r:
        reference = statistics(
            r["agent_xy"], r["goal_xy"], r["discarded_goal_xy"], r["hazards_xy"],
            r["vase_xy"],
        )  # fmt: skip
        reference |= {"agent yaw": r["agent_yaw"], "vase yaw": r["vase_yaw"]}
    own = statistics(
        layouts.agent_xy, layouts.goal_xy, layouts.discarded_goal_xy, layouts.hazards_xy,
        layouts.vases_xy[:, 0],
    )  # fmt: skip
    own |= {"agent yaw": layouts.agent_yaw, "vase yaw": layouts.vases_yaw[:, 0]}
    p_values = {name: stats.ks_2samp(own[name], reference[name]).pvalue for name in own}
    worst = min(p_values, key=lambda name: p_values[name])
    assert p_values[worst] * len(p_values) > 0.01, (worst, p_values[worst])


def test_the_reference_numbers_of_12000_layouts(layouts):
    """Specification, section 6; the tolerances are four standard errors."""
    goal_agent = np.linalg.norm(layouts.goal_xy - layouts.agent_xy, axis=1)
    moved = np.linalg.norm(layouts.goal_xy - layouts.discarded_goal_xy, axis=1)
    assert goal_agent.mean() == pytest.approx(1.408, abs=0.025)
    assert moved.mean() == pytest.approx(1.109, abs=0.03)
    assert (moved < 0.6).mean() == pytest.approx(0.308, abs=0.025)
    assert gaps(layouts.goal_xy[:, None], layouts.hazards_xy).min((1, 2)).mean() == pytest.approx(
        0.692, abs=0.01
    )
    assert layouts.goal_xy.std() == pytest.approx(0.735, abs=0.02)
    assert layouts.vases_xy.std() == pytest.approx(0.816, abs=0.02)


@pytest.mark.parametrize(
    ("level", "half", "hazards", "vases"), [(0, 1.0, 0, 0), (1, 1.5, 8, 1), (2, 2.0, 10, 10)]
)
def test_everything_keeps_its_distance(level, half, hazards, vases):
    layout = sample(level, 300, seed=level)
    kinds = [
        (layout.agent_xy[:, None], 0.4),
        (layout.goal_xy[:, None], 0.305),
        (layout.hazards_xy, 0.18),
        (layout.vases_xy, 0.15),
    ]
    assert [places.shape[1] for places, _ in kinds] == [1, 1, hazards, vases]
    for i, (places, keepout) in enumerate(kinds):
        assert np.abs(places).max(initial=0) <= half - keepout
        for other, other_keepout in kinds[i + 1 :]:
            assert gaps(places, other).min(initial=9) >= keepout + other_keepout
        between = gaps(places, places) + 9 * np.eye(places.shape[1])
        assert between.min(initial=9) >= 2 * keepout


def test_a_goal_without_room_is_given_up():
    """Hazards on a fine grid leave no place; the world that wants no goal keeps its own."""
    line = np.arange(-1.5, 1.6, 0.3)
    grid = np.stack(np.meshgrid(line, line), -1).reshape(1, -1, 2)
    placement = Goal(1).placement.__class__(1.5, grid.shape[1], 0)
    old = np.array([[0.25, 0.5], [0.5, 0.25]])
    goal, stuck = draw_goals(
        jax.random.PRNGKey(0), placement, np.array([True, False]), old,
        agent_xy=np.zeros((2, 2)), hazards_xy=np.repeat(grid, 2, 0), vases_xy=np.zeros((2, 0, 2)),
    )  # fmt: skip
    assert stuck.tolist() == [True, False]
    np.testing.assert_allclose(goal, old)
