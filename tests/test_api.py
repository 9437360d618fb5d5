"""The Python interface, as a script uses it."""

import json

import numpy as np
import pytest
from known_envs import Choices, TwoCosts
from walkers import HostWalk, Walk

import acpo
from acpo.errors import UserError
from acpo.export import export
from acpo.runs.session import RunOptions
from acpo.tasks.base import Box, TaskSpec
from acpo.tasks.tabular import TabularCMDP

QUIET = RunOptions(quiet=True, plots=False, tensorboard=False)


def test_a_loaded_run_acts_as_the_one_that_was_trained(trained):
    loaded = acpo.load(trained.path)
    observations = np.random.default_rng(0).normal(size=(7, 2))
    many = loaded.policy(observations)
    assert many.shape == (7, 1)
    np.testing.assert_array_equal(many, trained.policy(observations))
    np.testing.assert_allclose(loaded.policy(observations[0]), many[0], rtol=1e-5)
    np.testing.assert_allclose(loaded.policy(list(observations[0])), many[0], rtol=1e-5)
    assert not np.array_equal(many, loaded.policy(observations, seed=1))
    assert not np.array_equal(many, loaded.policy(observations, deterministic=False))


def test_what_a_policy_cannot_answer(trained):
    with pytest.raises(UserError, match=r"has 2 numbers, but this one has shape \(3,\)"):
        trained.policy(np.zeros(3))
    with pytest.raises(UserError, match="has the seeds 0, 1, not 5"):
        trained.policy(np.zeros(2), seed=5)
    with pytest.raises(UserError, match="'best' or 'last', not 'first'"):
        trained.policies("first")
    with pytest.raises(UserError, match="only for tabular tasks"):
        trained.policy_table()


def test_metrics_are_a_table(trained):
    metrics = trained.metrics
    assert len(metrics) == 6 and metrics.seeds == [0, 1]
    assert metrics["reward"].tolist() == [15.0] * 6
    assert metrics["cost_even"].tolist() == [10.0] * 6 and metrics["cost_late"].tolist() == [6.0] * 6
    assert metrics.seed(1)["steps"].tolist() == [80, 160, 240]
    assert set(metrics["stage"]) == {"max-reward"}


def test_an_evaluation_is_kept_in_the_run(run):
    result = acpo.evaluate(acpo.load(run), episodes=4)
    assert (result.reward.mean, result.costs["late"].mean) == (15.0, 6.0)
    assert not result.feasible and result.over_budget == {"even": 1.0, "late": 0.0}
    assert result.episodes[1].costs.tolist() == [[10.0, 6.0]] * 4
    assert json.loads((run / "evaluation.json").read_text())["episodes_per_seed"] == 4
    assert acpo.evaluate(run, episodes=2).facts["episodes_per_seed"] == 2
    for wrong in (0, -1, 2.5, True, "3"):
        with pytest.raises(UserError, match="episodes must be a whole number"):
            acpo.evaluate(run, episodes=wrong)


def test_settings_by_dotted_name_or_by_underscores(tmp_path, monkeypatch):
    from acpo import api  # noqa: PLC0415

    monkeypatch.setattr(api, "start_run", lambda plan, *_: plan.config)
    config = acpo.train("Tabular2", "ipo", [1, 2], 1e5, 3, ppo__clip=0.1, **{"interior_point.kappa": 0.2})
    assert (config.budget, config.steps, config.seed) == ((1.0, 2.0), 100_000, 3)
    assert (config.ppo.clip, config.interior_point.kappa) == (0.1, 0.2)
    assert acpo.train("Tabular2", budget=np.array([1.0, 2.0])).budget == (1.0, 2.0)
    assert acpo.train("Tabular2", budget=3).budget == (3.0, 3.0)


WRONG = {
    "no task": ({"task": None}, "give a task"),
    "a number": ({"task": 7}, "A task is a registered name"),
    "unknown name": ({"task": "Tabulr"}, "did you mean 'Tabular'?"),
    "unknown algorithm": ({"algo": "ip"}, "did you mean 'ipo'"),
    "unknown field": ({"ppo__clp": 1}, "There is no field 'ppo.clp'; did you mean 'ppo.clip'?"),
    "a group": ({"ppo": 1}, "'ppo' is a group of fields"),
    "NaN": ({"budget": float("nan")}, "budget must be finite"),
    "nested": ({"budget": [[1, 2]]}, "budget must be a number"),
    "truth": ({"steps": True}, "steps"),
    "words": ({"budget": "cheap"}, "budget must be a number, not 'cheap'"),
    "minibatch": ({"ppo__minibatch": 10**6}, "larger than rollout.batch"),
    "steps": ({"steps": 10**30}, "steps must be fewer"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_arguments_are_told_and_nothing_is_written(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    change, sentence = WRONG[kind]
    with pytest.raises(UserError) as raised:
        acpo.train(**({"task": "Tabular", "budget": 1} | change))
    assert sentence in str(raised.value) and "\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


def tabular() -> TabularCMDP:
    rng = np.random.default_rng(0)
    return TabularCMDP(
        rng.dirichlet(np.ones(3), size=(3, 2)), rng.uniform(size=(3, 2)), rng.uniform(size=(1, 3, 2)),
        np.full(3, 1 / 3), 4,
    )  # fmt: skip


def test_a_task_object_on_the_device(tmp_path, small):
    task = tabular()
    run = acpo.train(task, "ipo", 1.5, out=tmp_path / "run", options=QUIET, **small)
    table = run.policy_table()
    assert table.shape == (4, 3, 2)
    np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=1e-5)
    result = acpo.evaluate(run, episodes=400, deterministic=False)
    exact, costs = task.evaluate(table)
    # Sampled episodes against exact dynamic programming, within four standard errors.
    (episodes,) = result.episodes
    for sampled, value in ((episodes.reward, exact), (episodes.costs[:, 0], costs[0])):
        assert abs(sampled.mean() - value) < 4 * sampled.std() / np.sqrt(400)
    # Loaded without the object the task is not known, and a sentence says so.
    with pytest.raises(UserError, match="There is no task"):
        acpo.evaluate(acpo.load(run.path))
    assert acpo.evaluate(acpo.load(run.path, task), episodes=3).facts["episodes_per_seed"] == 3
    with pytest.raises(UserError, match="its sizes differ"):
        acpo.evaluate(acpo.load(run.path, Walk()))


@pytest.mark.long
def test_a_host_task_object(tmp_path, small):
    task = HostWalk(num_envs=4)
    run = acpo.train(task, "ppo-lag", 1.0, out=tmp_path / "run", options=QUIET, **small)
    assert len(run.metrics) == 3
    assert len(acpo.evaluate(run, episodes=6).episodes[0].reward) == 6
    with pytest.raises(UserError, match="serves one seed"):
        acpo.train(task, "ppo-lag", 1.0, seeds=2, out=tmp_path / "two", options=QUIET, **small)
    assert not (tmp_path / "two").exists()


def test_a_function_that_makes_an_environment(tmp_path):
    def make():
        return TwoCosts()

    from acpo import api  # noqa: PLC0415

    plan = api.prepare(make, "ipo", changes={"budget": (20, 3)})
    assert plan.source.spec == TaskSpec("make", 2, Box(1), ("even", "late"), 1000)
    assert plan.desired.tolist() == [20, 3]


def test_a_class_of_environments_with_choices(tmp_path, small):
    settings = {**small, "network.normalise": False}
    run = acpo.train(Choices, "ipo", (20, 3), out=tmp_path / "run", options=QUIET, **settings)
    assert run.policy(np.zeros(2)).shape == () and run.policy(np.zeros(2)) in (0, 1, 2)
    result = acpo.evaluate(run, episodes=2)
    assert (result.reward.mean, result.feasible) == (15.0, False)
    assert export(run.policies()[0], tmp_path / "p.onnx") <= 1e-5


def test_registered_names_are_tasks_too(monkeypatch):
    from acpo import api  # noqa: PLC0415

    acpo.register("MyTabular", lambda num_envs, backend: tabular())
    monkeypatch.setattr(api, "start_run", lambda plan, *_: plan)
    plan = acpo.train("MyTabular", budget=2)
    assert plan.source.name == "MyTabular" and plan.source.spec.costs == ("cost_0",)
