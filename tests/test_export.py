"""ONNX files against the policies they were made from."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acpo import export as exporting
from acpo.cli import main
from acpo.config import NetworkConfig
from acpo.errors import UserError
from acpo.learning import normaliser as normalisation
from acpo.learning.networks import Policy
from acpo.runs.policy import TrainedPolicy
from acpo.tasks.base import Box, Discrete, TaskSpec

onnxruntime = pytest.importorskip("onnxruntime")
OBSERVATIONS = 3


def policy_of(actions, normalise: bool, activation="tanh", hidden=(16, 8)) -> TrainedPolicy:
    spec = TaskSpec("made", OBSERVATIONS, actions, ("cost",), 10)
    network = NetworkConfig(hidden=hidden, activation=activation, normalise=normalise)
    policy = Policy(spec, network, key=jax.random.PRNGKey(1))
    # Freshly made, the last layer is nearly zero and would hide mistakes.
    policy = jax.tree.map(
        lambda leaf: leaf + 0.3 * jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), policy
    )
    statistics = None
    if normalise:
        seen = np.random.default_rng(0).normal([5, -300, 0.01], [2, 40, 0.001], (500, OBSERVATIONS))
        statistics = normalisation.update(normalisation.init(OBSERVATIONS), jnp.asarray(seen, jnp.float32))
    return TrainedPolicy(spec, policy, statistics, 1)


def run_file(path: Path, observations: np.ndarray) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"observation": observations}), strict=True))


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("actions", [Box(2), Discrete(4)], ids=["box", "discrete"])
@pytest.mark.parametrize("activation", ["tanh", "relu", "elu"])
def test_the_file_does_what_the_policy_does(tmp_path, actions, normalise, activation):
    policy = policy_of(actions, normalise, activation)
    assert exporting.export(policy, tmp_path / "p.onnx") <= 1e-5
    rng = np.random.default_rng(1)
    centre, spread = ([5, -300, 0.01], [2, 40, 0.001]) if normalise else (0, 1)
    observations = rng.normal(centre, spread, (200, OBSERVATIONS)).astype(np.float32)
    # Far outside of what was seen, where the normaliser clips.
    observations[:20] *= 1000
    made = run_file(tmp_path / "p.onnx", observations)
    expected = policy(observations)
    if isinstance(actions, Box):
        np.testing.assert_allclose(made["action"], expected, rtol=1e-5, atol=1e-5)
        assert np.ptp(expected) > 0.1
    else:
        np.testing.assert_array_equal(made["action"], expected)
        assert made["logits"].shape == (200, 4) and len(set(expected.tolist())) > 1
    single = run_file(tmp_path / "p.onnx", observations[:1])["action"]
    np.testing.assert_allclose(single, made["action"][:1], rtol=1e-5, atol=1e-6)


def test_clipping_is_inside(tmp_path):
    policy = policy_of(Box(2), True)
    exporting.export(policy, tmp_path / "p.onnx")
    mean, std = policy.normaliser.mean, normalisation.std(policy.normaliser)
    edge, beyond = (np.asarray(mean + k * std, np.float32)[None] for k in (normalisation.CLIP, 100.0))
    one, other = (run_file(tmp_path / "p.onnx", at)["action"] for at in (edge, beyond))
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_linear_policy(tmp_path):
    assert exporting.export(policy_of(Box(1), False, hidden=()), tmp_path / "p.onnx") <= 1e-5


def test_a_file_that_would_differ_is_not_written(tmp_path, monkeypatch):
    policy = policy_of(Box(2), True)
    monkeypatch.setitem(exporting._ACTIVATIONS, "tanh", "Sigmoid")
    path = tmp_path / "p.onnx"
    path.write_bytes(b"old")
    with pytest.raises(UserError, match=r"differs from the trained one by .*; nothing was written"):
        exporting.export(policy, path)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_the_command_exports_each_seed(run, trained, capsys):
    assert main(["export", "run", "first.onnx"]) == 0
    assert "differ by at most" in capsys.readouterr().out
    assert main(["export", "run", "second.onnx", "--seed", "1"]) == 0
    observations = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    for seed, name in enumerate(("first.onnx", "second.onnx")):
        made = run_file(Path(name), observations)["action"]
        np.testing.assert_allclose(made, trained.policy(observations, seed=seed), atol=1e-5)
    first, second = (trained.policy(observations, seed=seed) for seed in (0, 1))
    assert np.abs(first - second).max() > 1e-3


def test_without_the_extra_a_sentence_says_which(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(UserError, match=r"pip install 'acpo\[onnx\]'"):
        exporting.export(policy_of(Box(2), True), tmp_path / "p.onnx")
