"""Walk a Go1 with an exported policy, on plain MuJoCo and without acpo: what a robot's code would do.

python examples/go1_onnx.py policy.onnx src/acpo/tasks/quadruped/go1.xml 0.5 0 0
The three numbers are the command: forward m/s, left m/s, turn rad/s. Needs mujoco and onnxruntime.
"""

import sys

import mujoco
import numpy as np
import onnxruntime

LEGS = ("FR", "FL", "RR", "RL")


def walk(policy_path: str, model_path: str, command: np.ndarray, steps: int = 1000) -> np.ndarray:
    """Walk for `steps` of 0.02 s; gives the observations seen, [steps + 1, 72]."""
    session = onnxruntime.InferenceSession(policy_path)
    model = mujoco.MjModel.from_xml_path(model_path)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    default, action, last = data.ctrl.copy(), np.zeros(12), np.zeros(12)
    mujoco.mj_step(model, data, 4000)  # let it sink into its stand
    seen = []
    for step in range(steps + 1):
        mujoco.mj_forward(model, data)  # sensors of this very state
        up = data.site("imu").xmat.reshape(3, 3)[2]
        force = [np.linalg.norm(data.sensor(f"{leg}_foot_force").data) for leg in LEGS]
        angle = 2 * np.pi * (0.05 * step + np.array([0, 0.5, 0.5, 0]))
        motion = [data.qpos[7:] - default, 0.05 * data.qvel[6:]]
        motion += [2 * data.sensor("linear_velocity").data, 0.25 * data.sensor("angular_velocity").data]
        gait = [np.greater(force, 1.0), np.sin(angle), np.cos(angle), 2 * command]
        observation = np.concatenate([*motion, 0.3 * -9.81 * up, action, last, *gait]).clip(-100, 100)
        seen.append(observation)
        inputs = {session.get_inputs()[0].name: observation[None].astype(np.float32)}
        last, action = action, session.run(None, inputs)[0][0].clip(-10, 10)
        data.ctrl[:] = default + 0.25 * action
        mujoco.mj_step(model, data, 4)
    print(f"after {0.02 * steps:.1f} s at {data.qpos[:2].round(2)} m, {data.qpos[2]:.3f} m high")
    return np.stack(seen)


if __name__ == "__main__":
    walk(sys.argv[1], sys.argv[2], np.array(sys.argv[3:6] or [0.5, 0, 0], float))
