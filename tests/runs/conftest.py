"""Places and neighbours for the tests of `acpo.runs`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

TESTS = Path(__file__).resolve().parent.parent
# `walkers` and `foreign_envs` belong to the tests beside these.
sys.path[:0] = [str(TESTS / "training"), str(TESTS / "tasks")]


@pytest.fixture
def place():
    """A directory in memory where there is one: hundreds of checkpoints need not wait for a disk."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    with tempfile.TemporaryDirectory(dir=memory if usable else None, prefix="acpo-runs-") as folder:
        yield Path(folder)


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system of a megabyte or so; gives None where mounting is not permitted."""
    mounted = []

    def mount(kilobytes: int) -> Path | None:
        disk = tmp_path / f"disk{len(mounted)}"
        disk.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(disk)]
        try:
            done = subprocess.run(words, capture_output=True, check=False)
        except FileNotFoundError:
            return None
        if done.returncode:
            return None
        mounted.append(disk)
        return disk

    yield mount
    for disk in mounted:
        subprocess.run(["umount", "-l", str(disk)], check=True)


QUICK = {
    "jax_disable_most_optimizations": True,
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
"""Compiling is what these tests would spend their time on: do less of it, and nothing twice."""


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory):
    """Where compiled programs are kept, for this process and for those it starts."""
    settings = QUICK | {"jax_compilation_cache_dir": str(tmp_path_factory.mktemp("compiled"))}
    before = {name: jax.config.values[name] for name in settings}

    def change(values):
        for name, value in values.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()

    change(settings)
    yield settings
    change(before)


@pytest.fixture(scope="session")
def environment(compiled):
    """That of a process which finds the tests' modules and what was compiled here."""
    return (
        os.environ
        | {name.upper(): str(value) for name, value in compiled.items()}
        | {
            "JAX_PLATFORMS": "cpu",
            # jaxlib 0.10.1 logs every program it finds in such a place as an error, more than a pipe holds.
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": os.pathsep.join(str(TESTS / name) for name in ("tasks", "training", "runs")),
        }
    )
