"""The example without this package sees what the task shows, and drives the same robot."""

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from quadruped_by_hand import EXACT

from acpo.tasks.quadruped.model import XML
from acpo.tasks.quadruped.native import Go1Native

EXAMPLE = Path(__file__).parents[2] / "examples" / "go1_onnx.py"


def save_linear_policy(path: Path, weight: np.ndarray) -> None:
    """An ONNX file of observation [1, 72] @ weight [72, 12]."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["observation", "weight"], ["action"])],
        "policy",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, [1, 72])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, 12])],
        [numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)


def test_the_example_sees_and_does_what_the_task_does(tmp_path):
    pytest.importorskip("onnxruntime")
    spec = importlib.util.spec_from_file_location("go1_onnx", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    weight = 0.2 * np.random.default_rng(0).standard_normal((72, 12)).astype(np.float32)
    save_linear_policy(tmp_path / "policy.onnx", weight)
    command = np.array([0.5, -0.2, 0.3])
    seen = example.walk(str(tmp_path / "policy.onnx"), str(XML), command, steps=20)

    task = Go1Native(EXACT, 4, threads=1)
    observation = task.reset(0).observation.copy()
    task.set_commands(np.tile(command, (4, 1)))
    observation[:, 69:] = 2 * command
    for step in range(20):
        # Chaos between float32 and float64 starts costs digits with every contact.
        np.testing.assert_allclose(seen[step], observation[0], atol=1e-4 if step < 5 else 0.05)
        observation = task.step(observation @ weight).observation
