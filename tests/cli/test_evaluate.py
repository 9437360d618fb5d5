"""`acpo eval`: numbers against arithmetic, and films."""

import json
from pathlib import Path

import numpy as np
import pytest

from acpo.cli import main
from acpo.config import NetworkConfig
from acpo.learning.networks import Policy
from acpo.runs import evaluation, simulators, video
from acpo.runs.policy import TrainedPolicy
from acpo.tasks.base import Box, Reset, TaskSpec, TimeStep


class Scripted:
    """Two environments that play what is written. Environment 0 has episodes of two steps and starts
    in the middle of one; environment 1 has episodes of one step. Actions change nothing."""

    num_envs = 2
    # Episodes of each environment as lists of (reward, cost a, cost b) by step.
    EPISODES = (
        [[(50, 50, 50)], [(1, 0, 1), (2, 0, 1)], [(3, 4, 0), (4, 0, 0)], [(9, 9, 9), (9, 9, 9)]],
        [[(10, 1, 0)], [(20, 3, 5)], [(7, 7, 7)], [(7, 7, 7)], [(7, 7, 7)], [(7, 7, 7)]],
    )

    def spec(self):
        return TaskSpec("scripted", 1, Box(1), ("a", "b"), 2)

    def reset(self, seed):
        self.place = [[0, 0], [0, 0]]
        self.actions = []
        return Reset(np.zeros((2, 1), np.float32), np.array([1, 0]))

    def step(self, actions):
        self.actions.append(actions)
        rows, over = [], []
        for script, place in zip(self.EPISODES, self.place, strict=True):
            episode, step = place
            rows.append(script[episode][step])
            over.append(step + 1 == len(script[episode]))
            place[:] = [episode + 1, 0] if over[-1] else [episode, step + 1]
        signals, seen, no = np.array(rows, float), np.zeros((2, 1), np.float32), np.zeros(2, bool)
        return TimeStep(seen, seen, signals[:, 0], signals[:, 1:], no, np.array(over), no)

    def save(self):
        return {}

    def load(self, saved):
        pass

    def close(self):
        pass


def policy_for(spec) -> TrainedPolicy:
    import jax  # noqa: PLC0415

    return TrainedPolicy(spec, Policy(spec, NetworkConfig(hidden=()), key=jax.random.PRNGKey(0)), None, 1)


@pytest.fixture(scope="module")
def scripted():
    task = Scripted()
    return evaluation.evaluate(simulators.find(task), [policy_for(task.spec())], (2.0, 1.5), episodes=4)


def test_whole_episodes_of_every_environment_are_counted(scripted):
    """Two of each: (3, 0, 2), (7, 4, 0) of the first, whose part of an episode counts for nothing, and
    (10, 1, 0), (20, 3, 5) of the second, which could have played more in that time."""
    (episodes,) = scripted.episodes
    assert episodes.reward.tolist() == [3, 7, 10, 20]
    assert episodes.costs.tolist() == [[0, 2], [4, 0], [1, 0], [3, 5]]
    assert episodes.length.tolist() == [2, 2, 1, 1]


def test_means_and_intervals_by_hand(scripted):
    """Rewards 3, 7, 10, 20: mean 10, squared deviations 49 + 9 + 0 + 100 = 158, so a standard error of
    √(158/3)/2 = 3.6286; Student's t at 97.5 % with 3 degrees is 3.1824."""
    assert scripted.reward.mean == 10
    assert scripted.reward.low == pytest.approx(10 - 3.1824 * 3.6286, abs=1e-3)
    assert scripted.reward.high == pytest.approx(10 + 3.1824 * 3.6286, abs=1e-3)
    assert (scripted.costs["a"].mean, scripted.costs["b"].mean) == (2.0, 1.75)


def test_the_share_over_budget_and_feasibility(scripted):
    """Cost a is 4 and 3 against 2 in two episodes of four, its mean exactly 2; b is over 1.5 in two."""
    assert scripted.over_budget == {"a": 0.5, "b": 0.5}
    assert not scripted.feasible
    assert evaluation.Evaluation(scripted.reward, scripted.costs, {}, (2.0, 1.75), scripted.episodes).feasible


def test_several_seeds_are_averaged_as_seeds():
    """Means 2 and 6: t at 97.5 % with one degree is 12.7062, the standard error 2."""
    made = evaluation.estimate([np.array([1.0, 3.0]), np.array([6.0, 6.0, 6.0])])
    assert made.mean == 4
    assert made.high - made.mean == pytest.approx(12.7062 * 2, abs=1e-3)


def test_the_command_writes_what_it_prints(run, capsys):
    assert main(["eval", "run", "--episodes", "3"]) == 0
    out = capsys.readouterr().out
    assert "3 fresh episodes for each of 2 seeds, mean actions (mean [95 % interval over seeds])" in out
    assert "  reward  15.00 [15.00, 15.00]" in out
    assert "  even    10.00 [10.00, 10.00]  budget 4, over it in 100% of episodes" in out
    assert "  late    6.00 [6.00, 6.00]  budget 9, over it in 0% of episodes" in out
    assert "over budget on average: even" in out
    kept = json.loads(Path("run/evaluation.json").read_text())
    assert kept["reward"] == {"mean": 15.0, "low": 15.0, "high": 15.0}
    assert kept["costs"]["late"]["mean"] == 6.0
    assert kept["budgets"] == {"even": 4.0, "late": 9.0}
    assert kept["over_budget"] == {"even": 1.0, "late": 0.0}
    assert kept["feasible"] is False
    assert (kept["episodes_per_seed"], kept["deterministic"], kept["checkpoint"]) == (3, True, "last")
    assert kept["episodes"] == [
        {"reward": [15.0] * 3, "costs": [[10.0, 6.0]] * 3, "length": [5] * 3}
    ] * 2  # fmt: skip


def test_sampled_actions_differ_and_repeat():
    task = Scripted()

    def actions(deterministic: bool, seed: int = 0):
        evaluation.play(task, policy_for(task.spec()), 4, deterministic, seed)
        return np.array(task.actions)

    assert np.ptp(actions(True)) == 0
    assert np.ptp(actions(False)) > 0
    np.testing.assert_array_equal(actions(False), actions(False))
    assert (actions(False) != actions(False, seed=1)).all()


def film_of(name: str, path: Path, **task) -> video.Film:
    source = simulators.find(name)
    return video.record(source, policy_for(source.spec), path, (25.0,) * len(source.spec.costs))


@pytest.fixture
def short(monkeypatch):
    """Episodes of navigation that end after forty steps."""
    from acpo.tasks.navigation import host  # noqa: PLC0415

    step = host.NavigationTask.step

    def cut(self, actions):
        self.cut_clock = getattr(self, "cut_clock", 0) + 1
        result = step(self, actions)
        return result._replace(truncated=np.full(self.num_envs, self.cut_clock % 40 == 0))

    monkeypatch.setattr(host.NavigationTask, "step", cut)


def check(film: video.Film, width: int) -> None:
    import imageio.v2 as imageio  # noqa: PLC0415

    still = imageio.imread(film.still)
    assert still.shape == (video.SIZE + video.CAPTION, width, 3)
    # Words above, and below them something other than one colour.
    assert (still[: video.CAPTION] < 100).any() and np.ptp(still[video.CAPTION :]) > 100
    frames = imageio.get_reader(film.video).count_frames()
    assert frames == 40 // video.STRIDE
    assert not list(film.video.parent.glob(".partial*"))


def test_a_film_shows_episodes_side_by_side(tmp_path, short):
    film = film_of("PointCircle1", tmp_path / "film.mp4")
    check(film, 3 * video.SIZE)


def test_without_graphics_the_film_is_drawn_from_above_and_says_so(tmp_path, short, monkeypatch):
    from acpo.tasks.navigation import render  # noqa: PLC0415

    def none(*_):
        raise RuntimeError("no graphics")

    monkeypatch.setattr(render, "open_renderer", none)
    film = film_of("PointCircle1", tmp_path / "film.mp4")
    check(film, 3 * video.SIZE)
    assert film.note.startswith("Drawn from above")


def test_costs_flash_in_red():
    grey = np.full((video.SIZE, video.SIZE, 3), 128, np.uint8)
    edge = {}
    for lit in (False, True):
        tile = np.asarray(video._tile(grey, np.array([1.0, 2.0]), ("late",), (9.0,), lit))
        edge[lit] = tuple(int(c) for c in tile[video.CAPTION + 3, video.SIZE // 2])
    assert edge == {False: (128, 128, 128), True: video.FLASH}


def test_a_film_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes(b"old")

    def frames():
        yield np.zeros((64, 64, 3), np.uint8)
        raise RuntimeError("the robot tripped over the cable")

    with pytest.raises(RuntimeError):
        video._write(frames(), path, 25)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.long
def test_the_go1_is_filmed_by_its_own_viewer(tmp_path, monkeypatch):
    import imageio.v2 as imageio  # noqa: PLC0415

    from acpo.tasks.quadruped import viewer  # noqa: PLC0415

    record = viewer.record
    monkeypatch.setattr(viewer, "record", lambda *a, **k: record(*a, **k, steps=30))
    film = film_of("Go1", tmp_path / "go1.mp4")
    assert imageio.imread(film.still).shape == (720, 800, 3)
    assert film.note == ""
