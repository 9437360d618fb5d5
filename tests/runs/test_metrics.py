"""metrics.csv and TensorBoard events: what they hold, and that they go on after any kind of stop."""

import struct

import jax
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.record_writer import masked_crc32c
from tiny_runs import SMALL, interrupted, resume, rows, tabular, train
from walkers import Walk, config

from acpo import UserError, algorithms, training
from acpo.runs import metrics
from acpo.runs.metrics import CsvLog, EventLog
from acpo.runs.session import RunOptions
from acpo.tasks.base import Box, TaskSpec

SPEC = TaskSpec("two", 3, Box(1), ("hazards", "cost_1"), 10)
MEASURED = {
    "iteration": np.array([4, 4]),
    "reward": np.array([1.5, np.float32(0.1)], np.float32),
    "costs": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32),
    "budgets": np.array([[10.0, 20.0], [30.0, 40.0]], np.float32),
    "reward_budget": np.array([7.0, 8.0], np.float32),
    "stage": np.array([0, 1]),
    "multipliers": np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], np.float32),
    "kl": np.array([0.01, 0.02], np.float32),
    "finished": np.array([True, False]),
    "explained_variance": np.array([[0.0, 0.5, 1.0]] * 2, np.float32),
    "seconds": np.array([0.5, 0.5]),
}


def test_a_row_by_hand():
    first, second = metrics.rows(MEASURED, SPEC, first_seed=5, batch=100, seconds=12.3456)
    assert first == {
        "iteration": 4,
        "seed": 5,
        "steps": 400,
        "reward": np.float32(1.5),
        "cost_hazards": 1.0,
        "cost_1": 2.0,
        "budget_hazards": 10.0,
        "budget_cost_1": 20.0,
        "reward_budget": 7.0,
        "stage": "max-reward",
        "multiplier_reward": 0.0,
        "multiplier_hazards": 1.0,
        "multiplier_cost_1": 2.0,
        "explained_variance_reward": 0.0,
        "explained_variance_hazards": 0.5,
        "explained_variance_cost_1": 1.0,
        "finished": True,
        "kl": np.float32(0.01),
        "steps_per_second": 400.0,
        "seconds": 12.346,
        "iteration_seconds": 0.5,
    }
    assert (second["seed"], second["stage"], second["multiplier_hazards"]) == (6, "min-cost", 4.0)


@pytest.mark.parametrize("algo", algorithms.ALGORITHMS)
def test_every_algorithm_has_the_columns_that_people_ask_for(algo):
    """Without computing anything: shapes are enough to know the columns."""
    settings, task, key = config(algo), Walk(costs=2), jax.random.PRNGKey(0)
    state = jax.eval_shape(lambda: training.start(settings, task, np.ones(2, np.float32), key))
    measured = jax.eval_shape(lambda s: training.iterate(settings, task, s)[1], state)
    values = {name: np.zeros((1, *leaf.shape), leaf.dtype) for name, leaf in measured.items()}
    values["seconds"] = np.ones(1)
    (row,) = metrics.rows(values, task.spec(), 0, 64, 1.0)
    wanted = {"iteration", "seed", "steps", "reward", "cost_over_0", "cost_over_1", "budget_over_0"}
    wanted |= {"reward_budget", "stage", "kl", "entropy", "passes", "steps_per_second", "seconds"}
    if algo != "ppo":
        wanted |= {"multiplier_over_0", "multiplier_over_1"}
    assert wanted <= set(row)


def log(path, *iterations, upto=None, kind=CsvLog, **arguments):
    written = kind(path, upto) if kind is CsvLog else kind(path, [5, 6], upto)
    for iteration in iterations:
        values = MEASURED | {"iteration": np.array([iteration] * 2)}
        written.write(metrics.rows(values, SPEC, 5, 100, float(iteration)))
    written.close()


def test_numbers_are_read_back_bit_by_bit(place):
    values = np.random.default_rng(0).normal(size=200).astype(np.float32)
    written = CsvLog(place / "metrics.csv")
    for i, value in enumerate(values):
        row = metrics.rows(MEASURED, SPEC, 5, 100, 1.0)[0] | {"iteration": i, "reward": value}
        written.write([row])
    written.close()
    assert np.array_equal(metrics.read(place / "metrics.csv")["reward"].astype(np.float32), values)


def test_rows_after_the_resumed_iteration_and_half_rows_go(place):
    path = place / "metrics.csv"
    log(path, 1, 2, 3, 4)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:9])
    log(path, 3, 4, upto=2)
    table = metrics.read(path)
    assert table["iteration"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert path.read_text() == "".join(lines)


@pytest.mark.parametrize("content", ["", "iteration,seed"])
def test_a_file_without_a_whole_line_begins_anew(content, place):
    path = place / "metrics.csv"
    path.write_text(content)
    log(path, 1, upto=0)
    assert metrics.read(path)["iteration"].tolist() == [1, 1]


@pytest.mark.parametrize("content", [b"iteration,seed\nnonsense,1\n", b"\xff\xfe\n"])
def test_a_file_that_is_something_else_is_left_alone(content, place):
    path = place / "metrics.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not the metrics of a run"):
        log(path, 1, upto=0)
    assert path.read_bytes() == content


def test_other_columns_are_refused(place):
    path = place / "metrics.csv"
    log(path, 1)
    path.write_text(path.read_text().replace("kl", "kl_old"))
    with pytest.raises(UserError, match="was written with other columns"):
        log(path, 2, upto=1)


def test_a_new_run_does_not_keep_old_rows(place):
    log(place / "metrics.csv", 1, 2)
    log(place / "metrics.csv", 1)
    assert len(metrics.read(place / "metrics.csv")) == 2


# TensorBoard.


def events(folder):
    """Every event of every file, in the order TensorBoard reads them, with checksums checked."""
    found = []
    for file in sorted(folder.iterdir()):
        assert "tfevents" in file.name
        content = file.read_bytes()
        while content:
            size, crc = struct.unpack("<QI", content[:12])
            assert crc == masked_crc32c(content[:8])
            data, rest = content[12 : 12 + size], content[12 + size :]
            assert struct.unpack("<I", rest[:4])[0] == masked_crc32c(data)
            found.append(Event.FromString(data))
            content = rest[4:]
    return found


def scalars(folder):
    """{tag: {step: value}} as TensorBoard shows it: a restart hides what came after its step."""
    shown: dict[str, dict[int, float]] = {}
    for event in events(folder):
        if event.session_log.status == SessionLog.START:
            for values in shown.values():
                for step in [s for s in values if s >= event.step]:
                    del values[step]
        for value in event.summary.value:
            shown.setdefault(value.tag, {})[event.step] = value.simple_value
    return shown


def test_events_hold_the_numbers_of_the_rows(place):
    log(place, 1, 2, kind=EventLog)
    found = events(place / "seed_6")
    assert found[0].file_version == "brain.Event:2"
    shown = scalars(place / "seed_6")
    assert shown["reward"] == {1: pytest.approx(0.1), 2: pytest.approx(0.1)}
    assert shown["cost/hazards"][2] == 3.0
    assert shown["budget/cost_1"][2] == 40.0
    assert shown["multiplier/reward"][1] == 3.0
    assert scalars(place / "seed_5")["cost/hazards"][2] == 1.0
    assert not {"iteration", "seed", "stage"} & set(shown)


def test_events_go_on_after_a_resume_even_in_the_same_second(place):
    log(place, 1, 2, 3, kind=EventLog)
    log(place, 3, 4, kind=EventLog, upto=2)
    log(place, 4, 5, kind=EventLog, upto=3)
    assert len(list((place / "seed_5").iterdir())) == 3
    assert sorted(scalars(place / "seed_5")["reward"]) == [1, 2, 3, 4, 5]


def test_events_of_an_interrupted_run_are_those_of_its_table(place):
    options = RunOptions(plots=False, quiet=True)
    interrupted(train, place / "run", options=options, after=3)
    resume(place / "run", options=options)
    shown = scalars(place / "run" / "tensorboard" / "seed_0")
    for name, tag in (("reward", "reward"), ("cost_0", "cost/0"), ("kl", "kl")):
        expected = {int(row["iteration"]): np.float32(row[name]) for row in rows(place / "run")}
        assert {k: np.float32(v) for k, v in shown[tag].items()} == expected
    assert tabular().num_costs == 1
    assert SMALL["rollout.batch"] == 64
