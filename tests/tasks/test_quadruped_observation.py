"""Pinned tests 13 to 15: the 72 observed numbers (spec 3)."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from quadruped_by_hand import standing

from acpo.physics.state import PhysicsState
from acpo.tasks.quadruped.config import Go1Config
from acpo.tasks.quadruped.model import build_model
from acpo.tasks.quadruped.native import Go1Native
from acpo.tasks.quadruped.observation import PARTS, SIZE, observe
from acpo.tasks.quadruped.reading import describe, read, up_in_body

CONFIG = Go1Config()
_observe = jax.jit(observe, static_argnums=0)


def seen(config=CONFIG, reading=None, command=(0.5, -0.25, 1.0)):
    zero = jnp.zeros((1, 12))
    return _observe(
        config,
        reading or standing(),
        action=zero,
        last_action=zero,
        phases=jnp.asarray([[0, 0.5, 0.5, 0]]),
        command=jnp.asarray([command]),
        key=jax.random.PRNGKey(0),
    )[0]


def test_pin_13_a_robot_at_rest():
    observation = seen()
    assert SIZE == 72 and observation.shape == (72,)
    assert [part.stop - part.start for part in PARTS.values()] == [12, 12, 3, 3, 3, 12, 12, 4, 8, 3]
    expected = np.zeros(72)
    expected[32] = -2.943
    expected[57:61] = 1
    expected[65:69] = (1, -1, -1, 1)
    expected[69:72] = (1.0, -0.5, 2.0)
    np.testing.assert_allclose(observation, expected, atol=1e-6)


def test_scales_of_what_moves():
    observation = seen(
        reading=standing(
            joint_velocity=np.full(12, 2.0), linear_velocity=[1.0, 2.0, 3.0], angular_velocity=[4.0, 5.0, 6.0]
        )
    )
    np.testing.assert_allclose(observation[12:24], 0.1, atol=1e-6)
    np.testing.assert_allclose(observation[24:27], [2, 4, 6], atol=1e-6)
    np.testing.assert_allclose(observation[27:30], [1, 1.25, 1.5], atol=1e-6)


def test_pin_14_actions_in_order_and_yaw_unseen():
    task = Go1Native(CONFIG, 4, threads=1)
    task.reset(0)
    first, second = np.full((4, 12), 0.3, np.float32), np.full((4, 12), -0.2, np.float32)
    task.step(first)
    observation = task.step(second).observation
    np.testing.assert_array_equal(observation[:, 33:45], second)
    np.testing.assert_array_equal(observation[:, 45:57], first)

    model, robot = build_model(CONFIG), describe(CONFIG)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    seen_at = []
    pose, velocity = rng.normal(0, 0.1, 12), rng.normal(0, 1, 18)
    for yaw in (0.0, 2.0):
        quaternion, planar = np.zeros(4), np.zeros(3)
        turn = np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)])
        mujoco.mju_mulQuat(quaternion, turn, np.array([0.99, 0.1, -0.05, 0.0]))
        mujoco.mju_rotVecQuat(planar, velocity[:3], turn)
        data.qpos[:] = [0, 0, 0.28, *quaternion, *(pose + CONFIG.default_pose)]
        data.qvel[:] = velocity
        data.qvel[:3] = planar
        data.ctrl[:] = CONFIG.default_pose
        data.qacc_warmstart[:] = 0
        mujoco.mj_forward(model, data)
        state = PhysicsState(data.qpos[None], data.qvel[None], data.sensordata[None])
        seen_at.append(seen(reading=read(robot, state)))
    np.testing.assert_allclose(seen_at[0], seen_at[1], atol=1e-5)


def test_pin_15_gravity_in_the_body():
    for quaternion, gravity in (
        ([np.cos(np.pi / 8), np.sin(np.pi / 8), 0, 0], (0, -6.9367, -6.9367)),
        ([np.cos(np.pi / 36), 0, np.sin(np.pi / 36), 0], (1.7035, 0, -9.6610)),
    ):
        up = up_in_body(jnp.asarray([quaternion]))[0]
        observed = seen(reading=standing(up=up))[PARTS["gravity"]]
        np.testing.assert_allclose(observed, 0.3 * np.array(gravity), atol=3e-5)


def test_gravity_norm_moves_the_observation():
    assert seen(Go1Config(gravity_norm=1.0))[32] == -np.float32(0.3)


def test_noise_stays_within_its_physical_amounts():
    config = Go1Config(observation_noise=True)
    zero = jnp.zeros((1, 12))
    noisy = np.stack(
        [
            _observe(
                config,
                standing(),
                action=zero,
                last_action=zero,
                phases=jnp.zeros((1, 4)),
                command=jnp.zeros((1, 3)),
                key=jax.random.PRNGKey(seed),
            )[0]
            for seed in range(100)
        ]
    )
    noisy[:, 32] += 2.943
    for part, amount in (
        ("joint_position", 0.01),
        ("joint_velocity", 1.5 * 0.05),
        ("linear_velocity", 0.1 * 2),
        ("angular_velocity", 0.2 * 0.25),
        ("gravity", 0.05 * 9.81 * 0.3),
    ):
        largest = np.abs(noisy[:, PARTS[part]]).max()
        assert 0.95 * amount < largest < amount * 1.0001
    for part in ("actions", "last_actions", "contacts", "phases", "command"):
        assert np.ptp(noisy[:, PARTS[part]], axis=0).max() == 0
