"""From names and objects to what is stepped."""

import foreign_envs
import pytest
from tiny_runs import tabular
from walkers import HostWalk, Walk, config

from acpo import UserError
from acpo.config import replace
from acpo.runs import simulators
from acpo.tasks.base import HostTask


@pytest.mark.parametrize(
    ("task", "costs"),
    [
        ("Tabular2", 2),
        (tabular(), 1),
        (Walk(3), 3),
        (HostWalk(costs=3), 3),
        ("foreign_envs:Vector", 2),
        (foreign_envs.Vector, 2),
    ],
)
def test_every_form_of_a_task_has_its_costs(task, costs):
    source = simulators.find(task)
    assert len(source.spec.costs) == costs
    assert source.make(8).spec() == source.spec


@pytest.mark.parametrize("task", [3, None, ["PointGoal1"]])
def test_what_is_no_task_is_told(task):
    with pytest.raises(UserError, match="A task is a registered name, a task object or a function"):
        simulators.find(task)


def test_each_seed_has_a_simulator_of_its_own():
    built = simulators.build(simulators.find("foreign_envs:Walk"), config(seeds=3))
    assert len({id(simulator) for simulator in built}) == 3
    assert all(isinstance(one, HostTask) and one.num_envs == config().rollout.envs for one in built)


def test_a_device_task_serves_all_seeds():
    task = Walk()
    assert simulators.build(simulators.find(task), config(seeds=3)) is task


def test_an_object_on_the_host_fixes_the_number_of_environments_and_serves_one_seed():
    source = simulators.find(HostWalk(num_envs=5))
    assert source.recommended("acpo")["rollout.envs"] == 5
    with pytest.raises(UserError, match="serves one seed"):
        simulators.build(source, replace(config(), {"seeds": 2}))


def test_evaluation_starts_clocks_at_zero():
    source = simulators.find("PointCircle1", "native")
    assert simulators.for_evaluation(source, 4).reset(0).elapsed.tolist() == [0] * 4
    assert source.make(64).reset(0).elapsed.any()
