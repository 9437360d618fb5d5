"""From words to a checked configuration, and to a file and back."""

import dataclasses

import numpy as np
import pytest
import yaml

from acpo import algorithms, configure
from acpo.config import Config
from acpo.errors import UserError
from acpo.tasks.base import Box, TaskSpec

TWO = TaskSpec("two", 2, Box(1), ("a", "b"), 10)


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("steps", "1e4", 10_000),
        ("steps", 1e4, 10_000),
        ("steps", np.int64(7), 7),
        ("budget", "10,5", (10.0, 5.0)),
        ("budget", "10 5", (10.0, 5.0)),
        ("budget", 25, (25.0,)),
        ("budget", np.array([1, 2]), (1.0, 2.0)),
        ("network.hidden", [32, 16], (32, 16)),
        ("network.normalise", "no", False),
        ("network.normalise", np.True_, True),
        ("curriculum.knots", "0:2,1:1", ((0.0, 2.0), (1.0, 1.0))),
        ("network.activation", "elu", "elu"),
    ],
)
def test_values_are_read_as_people_write_them(name, given, expected):
    value = configure.coerce(name, given)
    assert value == expected and type(value) is type(expected)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": "ten"}, "steps must be a whole number, not 'ten'."),
        ({"steps": 2.5}, "steps must be a whole number, not 2.5."),
        ({"ppo.clip": "nan"}, "ppo.clip must be finite"),
        ({"ppo.clip": 2}, "ppo.clip must be at most 1"),
        ({"ppo.clip": -0.1}, "ppo.clip must not be negative"),
        ({"network.hidden": "8,0"}, "at least 1 unit in each layer"),
        ({"network.activation": "gelu"}, "is one of tanh, relu, elu"),
        ({"network.normalise": "maybe"}, "network.normalise"),
        ({"clip": 0.1}, "did you mean 'ppo.clip'?"),
        ({"ppo": 0.1}, "'ppo' is a group of fields"),
        ({"ppo.clipp": 0.1}, "did you mean 'ppo.clip'?"),
        ({"rollout.batch": 150}, "must be a multiple of rollout.envs (100)"),
        ({"ppo.minibatch": 20001}, "ppo.minibatch (20001) is larger than rollout.batch (20000)."),
        ({"switching.tolerance": 1}, "acpo does not read 'switching.tolerance'"),
        ({"seed": 2**31}, "seed must be below 2^31"),
        ({"steps": 10**18}, "steps must be fewer than 2^31 batches"),
        ({"task": 3}, "task is a text"),
    ],
)
def test_what_is_wrong_is_told(changes, sentence):
    with pytest.raises(UserError) as raised:
        configure.build("acpo", "T", changes=changes)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("knots", "sentence"),
    [
        ("0:2", "at least two pairs"),
        ("0:2,0:1", "must rise"),
        ("0.5:2,0.1:1", "must rise"),
        ("0:2,2:1", "within 0 to 1"),
        ("0:2,1:-1", "must not be negative"),
        ("0,1", "pairs such as 0:2,1:1"),
        ("0:a,1:1", "must be a number"),
    ],
)
def test_knots_are_checked(knots, sentence):
    with pytest.raises(UserError, match=sentence):
        configure.build("ipo-c", "T", changes={"curriculum.shape": "knots", "curriculum.knots": knots})


def test_later_layers_win():
    """Fields, the algorithm's defaults, the task's, the preset's, the user's."""
    task = {"ppo.clip": 0.3, "rollout.batch": 400, "ppo.passes": 3}
    config = configure.build("ipo", "T", task, changes={"ppo.passes": 5})
    assert (config.ppo.clip, config.rollout.batch, config.ppo.passes) == (0.3, 400, 5)
    config = configure.build("ipo", "T", task, "paper", {"ppo.passes": 5})
    assert (config.ppo.clip, config.rollout.batch, config.ppo.passes) == (0.2, 20000, 5)


def test_budgets_meet_the_costs_of_a_task():
    def budgets(given, algo="ipo", spec=TWO):
        return configure.desired_budgets(Config(task="two", algo=algo, budget=given), spec)

    config, desired = budgets((3.0,))
    assert config.budget == (3.0, 3.0) and desired.tolist() == [3, 3]
    assert budgets((), "ppo")[1].tolist() == [np.inf, np.inf]
    free = dataclasses.replace(TWO, costs=())
    assert budgets((), spec=free)[1].shape == (0,)
    for given, spec, sentence in (
        ((), TWO, r"two has 2 costs \(a, b\) and ipo needs a budget for each: --budget … --budget …"),
        ((1.0, 2.0, 3.0), TWO, "but 3 budgets were given"),
        ((1.0, -2.0), TWO, "cannot be negative: -2"),
        ((1.0,), free, "has no costs"),
    ):
        with pytest.raises(UserError, match=sentence):
            budgets(given, spec=spec)


@pytest.mark.parametrize("preset", configure.PRESETS)
@pytest.mark.parametrize("algo", algorithms.ALGORITHMS)
def test_every_configuration_survives_its_file(algo, preset):
    config = configure.build(algo, "Go1", preset=preset, changes={"budget": (1, 2.5), "network.hidden": ()})
    text = yaml.safe_dump(configure.to_dict(config))
    assert configure.from_dict(yaml.safe_load(text)) == config


def test_a_file_that_lacks_fields_takes_their_defaults():
    assert configure.from_dict({"steps": 5, "ppo": {"clip": 0.1}}).ppo.clip == 0.1
    for wrong in (
        None,
        5,
        ["steps"],
        {"ppo": 3},
        {"stepz": 1},
        {3: 4},
        {"ppo": {"clip": {"a": 1}}},
        {"algo": "x"},
    ):
        with pytest.raises(UserError):
            configure.from_dict(wrong)


def test_every_field_has_a_sentence():
    """`--help` is the documentation."""
    import inspect  # noqa: PLC0415

    source = inspect.getsource(inspect.getmodule(Config))
    for name in configure.FIELDS:
        field = name.rpartition(".")[2]
        after = source.partition(f"    {field}: ")[2].splitlines()[1]
        assert after.strip().startswith('"""'), name
