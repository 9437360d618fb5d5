"""A trained policy as ONNX, its observation statistics inside: raw observation in, action out."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from acpo.errors import UserError
from acpo.learning import normaliser as normalisation
from acpo.runs.policy import TrainedPolicy

TOLERANCE = 1e-5
OPSET = 17
_ACTIVATIONS = {"tanh": "Tanh", "relu": "Relu", "elu": "Elu"}


def export(policy: TrainedPolicy, path: Path) -> float:
    """Write `path` and compare it with the policy by onnxruntime; gives the largest difference.

    Input `observation` [batch, O]. Output `action`: the mean [batch, A], or the likeliest of
    discrete actions [batch], then also `logits` [batch, A].
    """
    if path.suffix.lower() != ".onnx":
        raise UserError(f"An exported policy is an ONNX file, so its name should end in .onnx: {path}.")
    try:
        import onnx  # noqa: PLC0415
        import onnxruntime  # noqa: PLC0415
    except ImportError:
        raise UserError("Export needs the extra: pip install 'acpo[onnx]'.") from None
    if path.is_dir() or not path.parent.is_dir():
        what = "a directory" if path.is_dir() else "in a directory that does not exist"
        raise UserError(f"Cannot write {path}: it is {what}.")
    model = build(policy, onnx)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    difference = compare(policy, session)
    if difference > TOLERANCE:
        raise UserError(
            f"The exported policy differs from the trained one by {difference:.1e}; nothing was written."
        )
    partial = path.with_name(f".partial-{path.name}")
    try:
        # A file that was there stays whole until the new one is.
        partial.write_bytes(model.SerializeToString())
        os.replace(partial, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise UserError(f"Cannot write {path}: {error.strerror or error}.") from error
    return difference


def build(policy: TrainedPolicy, onnx: Any) -> Any:
    """The graph: standardise, dense layers, and the index of the largest where actions are discrete."""
    helper, tensor = onnx.helper, onnx.numpy_helper.from_array
    nodes: list[Any] = []
    constants: list[Any] = []
    current = "observation"

    def constant(name: str, value: Any) -> str:
        constants.append(tensor(np.asarray(value, np.float32), name))
        return name

    def node(kind: str, *inputs: str, output: str) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [output], name=output))
        return output

    if policy.normaliser is not None:
        mean = constant("mean", policy.normaliser.mean)
        std = constant("std", normalisation.std(policy.normaliser))
        low, high = constant("low", -normalisation.CLIP), constant("high", normalisation.CLIP)
        current = node("Div", node("Sub", current, mean, output="centred"), std, output="scaled")
        current = node("Clip", current, low, high, output="standardised")
    network = policy.policy.network
    last = len(network.weights) - 1
    discrete = policy.policy.log_std is None
    for k, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        outcome = ("logits" if discrete else "action") if k == last else f"layer_{k}"
        current = node(
            "Gemm", current, constant(f"weight_{k}", weight), constant(f"bias_{k}", bias), output=outcome
        )
        if k < last:
            current = node(_ACTIVATIONS[network.activation], current, output=f"active_{k}")
    size = network.biases[-1].shape[0]
    kind = onnx.TensorProto
    outputs = [helper.make_tensor_value_info(current, kind.FLOAT, ["batch", size])]
    if discrete:
        nodes.append(helper.make_node("ArgMax", ["logits"], ["action"], axis=1, keepdims=0, name="action"))
        outputs.insert(0, helper.make_tensor_value_info("action", kind.INT64, ["batch"]))
    inputs = [
        helper.make_tensor_value_info("observation", kind.FLOAT, ["batch", policy.spec.observation_size])
    ]
    graph = helper.make_graph(nodes, "policy", inputs, outputs, constants)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="acpo"
    )


def compare(policy: TrainedPolicy, session: Any, count: int = 256) -> float:
    """Largest difference, relative where outputs exceed 1, over observations in and beyond the range
    that training saw."""
    rng = np.random.default_rng(0)
    mean, std = np.zeros(1), np.ones(1)
    if policy.normaliser is not None:
        mean, std = np.asarray(policy.normaliser.mean), np.asarray(normalisation.std(policy.normaliser))
    shape = (count, policy.spec.observation_size)
    observations = (mean + std * rng.normal(scale=2.0, size=shape)).astype(np.float32)
    seen = jnp.asarray(observations)
    if policy.normaliser is not None:
        seen = normalisation.apply(policy.normaliser, seen)
    expected = np.asarray(policy.policy.network(seen))
    name = "logits" if policy.policy.log_std is None else "action"
    (found,) = session.run([name], {"observation": observations})
    return float(np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)))
