"""Tiny trained runs that many tests look at, and places to break copies of them."""

import shutil
import signal
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
# Environments and tasks that belong to the tests beside these.
sys.path[:0] = [str(TESTS / name) for name in ("cli", "tasks", "training")]

# A shell starts its background jobs with Ctrl-C ignored, and so would be every process made here.
signal.signal(signal.SIGINT, signal.default_int_handler)

SMALL = {
    "steps": 240,
    "rollout.envs": 4,
    "rollout.batch": 80,
    "network.hidden": (8,),
    "ppo.minibatch": 40,
    "ppo.passes": 2,
}


@pytest.fixture(scope="session")
def small():
    """Settings of a run of a second, once compiled."""
    return SMALL


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Two seeds of acpo on an environment with two costs; not to be changed."""
    import acpo  # noqa: PLC0415
    from acpo.runs.session import RunOptions  # noqa: PLC0415

    path = tmp_path_factory.mktemp("trained") / "two-costs"
    options = RunOptions(quiet=True, tensorboard=False)
    return acpo.train("known_envs:TwoCosts", budget=(4, 9), seeds=2, out=path, options=options, **SMALL)


@pytest.fixture
def run(trained, tmp_path, monkeypatch):
    """A copy to break, named `run` in the current directory."""
    shutil.copytree(trained.path, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"
