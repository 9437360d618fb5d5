"""Our tasks as Gymnasium environments."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from acpo.catalogue import register_gymnasium


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["PointGoal1", "CarCircle1"])
def test_gymnasiums_own_checker(name):
    env = gymnasium.make(f"acpo/{name}-v0")
    check_env(env.unwrapped, skip_render_check=True)
    assert gymnasium.make(env.spec).spec.id == f"acpo/{name}-v0"


def test_one_environment_reports_its_costs_and_ends_on_time():
    env = gymnasium.make("acpo/CarCircle1-v0")
    first, _ = env.reset(seed=3)
    assert first.shape == (40,) and first.dtype == np.float64
    total = 0.0
    for i in range(500):
        _, reward, terminated, truncated, info = env.step(np.array([1.0, 1.0], np.float32))
        assert isinstance(reward, float) and not terminated and truncated == (i == 499)
        assert info["cost"] == info["cost_sum"] == info["cost_out_of_boundary"] == info["costs"][0]
        total += info["cost"]
    assert total > 50  # straight ahead leaves the walls
    again, _ = env.reset()
    assert not np.array_equal(again, first)
    repeated, _ = env.reset(seed=3)
    np.testing.assert_array_equal(repeated, first)


def test_a_wrong_action_is_refused():
    env = gymnasium.make("acpo/CarCircle1-v0", disable_env_checker=True)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        env.unwrapped.step(np.zeros(3))


def test_a_vector_of_environments_restarts_in_the_same_step():
    envs = gymnasium.make_vec("acpo/PointCircle1-v0", num_envs=64)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    observation, _ = envs.reset(seed=0)
    assert observation.shape == (64, 28) and envs.single_observation_space.contains(observation[0])
    assert envs.action_space.shape == (64, 2)
    reward_sum, cost_sum = np.zeros(64), np.zeros(64)
    forward = np.tile(np.float32([1.0, 0.05]), (64, 1))
    for i in range(500):
        observation, reward, terminated, truncated, infos = envs.step(forward)
        reward_sum += reward
        cost_sum += infos["cost"]
        assert infos["costs"].shape == (64, 1) and truncated.all() == truncated.any() == (i == 499)
    assert not terminated.any()
    np.testing.assert_allclose(infos["episode"]["r"], reward_sum)
    np.testing.assert_array_equal(infos["episode"]["c"], cost_sum)
    assert infos["episode"]["l"].tolist() == [500] * 64 and cost_sum.max() > 0
    assert not np.array_equal(infos["final_obs"][5], observation[5])
    np.testing.assert_array_equal(infos["final_info"]["cost"], infos["cost"])
    *_, infos = envs.step(forward)
    assert "final_obs" not in infos and "episode" not in infos


def test_every_task_is_registered_once():
    register_gymnasium()  # again: `import acpo` has done it
    ids = [name for name in gymnasium.registry if name.startswith("acpo/")]
    assert len(ids) == len(set(ids)) >= 12
    assert "acpo/PointGoal2-v0" in ids


def test_importing_acpo_is_enough_and_starts_no_jax():
    code = "import acpo, gymnasium, sys; print('jax' in sys.modules, 'acpo/Go1-v0' in gymnasium.registry)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
