"""Navigation in the compiled graph: the same task as on the host, in one scan. (Long: it compiles.)"""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acpo import tasks
from acpo.errors import UserError
from acpo.tasks.base import DeviceTask

DATA = Path(__file__).parents[1] / "data"
ENVS = 16


@pytest.fixture(scope="module")
def rollout():
    """A Point in Circle for 12 steps, with the clocks of two environments about to run out."""
    task = tasks.make("PointCircle1", ENVS, "mjx", impl="jax")
    actions = jax.random.uniform(jax.random.PRNGKey(1), (12, ENVS, 2), minval=-3.0, maxval=3.0)

    @eqx.filter_jit
    def run(task, key, actions):
        state, start = task.reset(key, ENVS)
        clock = start.elapsed.at[:3].set(jnp.array([495, 490, 100])).at[3:].set(0)
        state = state._replace(episodes=state.episodes._replace(clock=clock))
        final, steps = jax.lax.scan(lambda *carry: task.step(*carry), state, actions)  # noqa: PLW0108
        return state, start, final, steps

    return task, actions, *run(task, jax.random.PRNGKey(0), actions)


@pytest.mark.long
def test_it_is_a_device_task_of_the_same_facts(rollout):
    task, _, _, start, *_ = rollout
    assert isinstance(task, DeviceTask)
    assert task.spec() == tasks.make("PointCircle1", 1, "native").spec()
    assert start.observation.shape == (ENVS, 28) and start.observation.dtype == jnp.float32


@pytest.mark.long
def test_clocks_start_at_random_phases(rollout):
    elapsed = np.asarray(rollout[3].elapsed)
    assert len(set(elapsed)) > 12 and elapsed.min() >= 0 and elapsed.max() < 500


@pytest.mark.long
def test_episodes_end_on_time_and_restart_elsewhere(rollout):
    _, _, begin, _, final, steps = rollout
    expected = np.zeros((12, ENVS), bool)
    expected[4, 0] = expected[9, 1] = True
    np.testing.assert_array_equal(steps.truncated, expected)
    assert not np.asarray(steps.terminated).any() and not np.asarray(steps.failed).any()
    same = np.asarray(steps.observation == steps.final_observation).all(axis=2)
    np.testing.assert_array_equal(same, ~expected)
    assert final.episodes.clock[:4].tolist() == [7, 2, 112, 12]
    assert int(begin.pool.used) == ENVS and int(final.pool.used) == ENVS + 2
    # A new episode starts from rest, within the square, as the first observation shows.
    np.testing.assert_allclose(steps.observation[4, 0, 3:9], 0, atol=1e-6)
    assert steps.observation[4, 0, 2] == pytest.approx(9.81)


@pytest.mark.long
def test_it_goes_where_the_host_goes(rollout):
    """Single precision: single steps of the yaw servo may differ, places may not (section 9)."""
    _, actions, begin, _, _, steps = rollout
    host = tasks.make("PointCircle1", ENVS, "native", random_phases=False, dtype="float64")
    host.reset(0)
    host.set_state(
        np.asarray(begin.bodies.qpos, float),
        np.asarray(begin.bodies.qvel, float),
        begin.episodes.game,
        np.zeros(ENVS, np.int32),
    )
    for i, action in enumerate(np.asarray(actions, float)):
        expected = host.step(action)
        going = slice(2, None)  # the first two begin new episodes
        np.testing.assert_allclose(
            steps.observation[i, going, 12:], expected.observation[going, 12:], atol=2e-2
        )
        np.testing.assert_allclose(steps.reward[i, going], expected.reward[going], atol=2e-3)
        np.testing.assert_array_equal(steps.costs[i, going], expected.costs[going])


def test_what_mjx_jax_cannot_do_is_said():
    with pytest.raises(UserError, match="cannot simulate this model"):
        tasks.make("CarGoal1", 2, "mjx", impl="jax")
    with pytest.raises(UserError, match="no backend 'gazebo'"):
        tasks.make("CarGoal1", 2, "gazebo")
    with pytest.raises(UserError, match="no MJX implementation 'cpp'"):
        tasks.make("CarGoal1", 2, "mjx", impl="cpp")


@pytest.mark.long
@pytest.mark.parametrize("task", ["PointCircle1", "CarCircle1", "PointGoal1"])
def test_in_double_precision_it_agrees_with_the_original(task, monkeypatch):
    """So what single precision misses is rounding, and not another model."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "conformance"))
    import replay  # noqa: PLC0415

    from acpo.physics import mjx  # noqa: PLC0415

    monkeypatch.setattr(mjx, "TOLERANCE", 1e-12)
    found = replay.replay(DATA / f"trace_{task}.npz", "mjx", double=True)
    assert found["qpos_rest"]["max"] < 1e-7 and found["qvel_rest"]["max"] < 5e-6
    assert found["accelerometer_rest"]["max"] < 1e-5


@pytest.mark.long
@pytest.mark.parametrize("task", ["PointCircle1", "CarCircle1"])
def test_in_single_precision_it_stays_near_the_original(task, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "conformance"))
    import replay  # noqa: PLC0415

    found = replay.replay(DATA / f"trace_{task}.npz", "mjx")
    assert found["qpos_rest"]["p99"] < 1e-3 and found["qvel_rest"]["p99"] < 5e-2
    assert found["reward"]["max"] < 1e-5 and found["circle_lidar"]["max"] < 1e-5
    assert found["truncated_mismatches"] == 0
