"""Other people's environments as tasks: costs, seeds, ends, resume, and mistakes told in a sentence."""

import sys

import foreign_envs
import numpy as np
import pytest

from acpo.errors import UserError
from acpo.tasks import registry
from acpo.tasks.base import Box, Discrete, HostTask
from acpo.tasks.gym import from_path


def actions(count, envs, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, envs, 1))


def by_hand(env, seeds, moves):
    """The environment run alone, restarted with the seed that `CostEnv` documents."""
    rows, episode = [], 0

    def restart():
        return env.reset(seed=int(np.random.SeedSequence([seeds, episode]).generate_state(1)[0] >> 1))[0]

    observation = restart()
    first = observation
    for move in moves:
        final, reward, terminated, truncated, info = env.step(np.clip(move, -0.5, 0.5).astype(np.float32))
        observation = final
        if terminated or truncated:
            episode += 1
            observation = restart()
        rows.append((observation, final, reward, info["cost"], terminated, truncated and not terminated))
    return first, rows


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_batch_is_its_environments_side_by_side(asynchronous):
    task = from_path("foreign_envs:Walk", num_envs=3, asynchronous=asynchronous)
    try:
        assert isinstance(task, HostTask)
        start = task.reset(7)
        seeds = np.random.SeedSequence(7).generate_state(3) >> 1
        moves = actions(40, 3)
        steps = [task.step(move) for move in moves]
        ends = 0
        for i in range(3):
            first, rows = by_hand(foreign_envs.Walk(), int(seeds[i]), moves[:, i])
            np.testing.assert_array_equal(start.observation[i], first)
            for step, (observation, final, reward, cost, terminated, truncated) in zip(
                steps, rows, strict=True
            ):
                np.testing.assert_array_equal(step.observation[i], observation)
                np.testing.assert_array_equal(step.final_observation[i], final)
                assert step.reward[i] == np.float32(reward)
                assert step.costs[i].tolist() == [cost]
                assert (step.terminated[i], step.truncated[i]) == (terminated, truncated)
                ends += terminated or truncated
        assert ends > 6
    finally:
        task.close()


def test_the_facts_of_a_task_come_from_one_trial_step():
    spec = from_path("foreign_envs:Walk", num_envs=1, limit=5).spec()
    assert (spec.observation_size, spec.actions, spec.costs) == (2, Box(1), ("cost",))
    assert spec.episode_steps == 1000
    assert from_path("foreign_envs:Vector", num_envs=1).spec().costs == ("high", "low")
    six = from_path("foreign_envs:SixValues", num_envs=1, episode_steps=9)
    assert six.spec().costs == ("cost",) and six.spec().episode_steps == 9
    spec = from_path("foreign_envs:DictDiscrete", num_envs=1).spec()
    assert (spec.observation_size, spec.actions) == (21, Discrete(3))


def test_wrappers_do_not_hide_the_names_of_costs_or_the_time_limit():
    spec = from_path("foreign_envs:wrapped", num_envs=1).spec()
    assert (spec.costs, spec.episode_steps) == (("high", "low"), 11)


def test_a_module_in_the_current_directory_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walk_from_here.py").write_text("from foreign_envs import Vector as make\n")
    assert from_path("walk_from_here:make", num_envs=1).spec().costs == ("high", "low")


def test_six_values_give_the_costs_of_the_same_walk():
    scalar, six = (from_path(f"foreign_envs:{name}", num_envs=2) for name in ("Walk", "SixValues"))
    scalar.reset(0), six.reset(0)
    total = 0.0
    for move in np.abs(actions(10, 2)):
        a, b = scalar.step(move), six.step(move)
        np.testing.assert_array_equal(a.costs, b.costs)
        total += a.costs.sum()
    assert total > 0


def test_discrete_actions_start_at_zero_and_observation_dicts_are_flat():
    task = from_path("foreign_envs:DictDiscrete", num_envs=2)
    first = task.reset(0).observation
    assert first.shape == (2, 21) and first[:, 0].tolist() == [1.0, 1.0]  # t = 0, one-hot
    moved = task.step(np.array([0, 2])).final_observation
    assert moved[0, 20] < first[0, 20] - 0.5 and moved[1, 20] > first[1, 20] + 0.5


def test_a_time_limit_of_ours_truncates():
    task = from_path("foreign_envs:Walk", num_envs=1, episode_steps=4, ends=100.0)
    task.reset(0)
    ended = [bool(task.step(np.zeros((1, 1))).truncated[0]) for _ in range(8)]
    assert ended == [False, False, False, True] * 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_loaded_task_goes_on_bit_for_bit(asynchronous):
    straight, resumed = (
        from_path("foreign_envs:Vector", num_envs=3, asynchronous=asynchronous) for _ in "ab"
    )
    try:
        straight.reset(3)
        moves = actions(30, 3)
        for move in moves[:17]:
            straight.step(move)
        saved = straight.save()
        assert all(isinstance(value, np.ndarray) and value.dtype != object for value in saved.values())
        resumed.load(saved)
        for move in moves[17:]:
            for a, b in zip(straight.step(move), resumed.step(move), strict=True):
                np.testing.assert_array_equal(a, b)
    finally:
        straight.close(), resumed.close()


def test_an_environment_that_cannot_resume_says_so():
    task = from_path("foreign_envs:Unrepeatable", num_envs=1)
    task.reset(0)
    task.step(np.zeros((1, 1)))
    with pytest.warns(UserWarning, match="do not resume exactly"):
        task.load(task.save())


def test_nan_goes_through_to_whoever_checks_for_it():
    task = from_path("foreign_envs:Breaks", num_envs=2, ends=100.0)
    task.reset(0)
    for _ in range(3):
        assert np.isfinite(task.step(np.zeros((2, 1))).observation).all()
    step = task.step(np.zeros((2, 1)))
    assert np.isnan(step.final_observation).all() and not (step.terminated | step.truncated).any()
    # The policy answers NaN with NaN; the environment must not be what falls over.
    assert not task.step(np.full((2, 1), np.nan)).truncated.any()


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("no_such_module:Walk", "does not import"),
        ("foreign_envs:Run", "has no 'Run'"),
        ("foreign_envs:number", "not a function or class"),
        ("foreign_envs:nothing", "gave a int where one Gymnasium environment"),
        ("foreign_envs:NoCost", "reports no cost"),
        ("foreign_envs:WrongShape", r"shape \(3,\) that does not fit"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(path, sentence):
    with pytest.raises(UserError, match=sentence) as raised:
        registry.make(path, num_envs=2)
    assert str(raised.value).count("\n") == 0 and str(raised.value).endswith(".")


def test_an_option_the_factory_does_not_know():
    with pytest.raises(UserError, match="raised TypeError while it was made"):
        from_path("foreign_envs:Walk", num_envs=1, colour="red")


@pytest.mark.parametrize(
    ("name", "asynchronous", "sentence"),
    [
        ("Raises", False, "raised RuntimeError in step: the motor is on fire"),
        ("Raises", True, "raised RuntimeError in step: the motor is on fire"),
        ("Dies", True, "A worker process of 'foreign_envs:Dies' died"),
    ],
)
def test_a_failure_in_step_is_told_too(name, asynchronous, sentence):
    task = from_path(f"foreign_envs:{name}", num_envs=2, asynchronous=asynchronous, ends=100.0)
    task.reset(0)
    with pytest.raises(UserError, match=sentence):
        for _ in range(6):
            task.step(np.zeros((2, 1)))
    task.close()
