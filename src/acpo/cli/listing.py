"""`acpo list`."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from acpo import algorithms
from acpo.cli import arguments
from acpo.tasks import registry


@dataclass(frozen=True)
class Options:
    """No flags."""


def main(argv: list[str]) -> int:
    try:
        arguments.parse(argv, {}, (), "list")
    except arguments.HelpAsked:
        arguments.show_help(Options, "acpo list", "Tasks, algorithms and backends on this machine.")
        return 0
    print("Tasks")
    for name in registry.names():
        print(f"  {name}")
    print("  package.module:factory of any Gymnasium environment with costs")
    print("\nAlgorithms")
    for algorithm in algorithms.ALGORITHMS.values():
        print(f"  {algorithm.name:<9} {algorithm.summary}")
    print("\nBackends")
    print(f"  native    MuJoCo {_version('mujoco')} on {len(os.sched_getaffinity(0))} threads")
    mjx = _version("mujoco-mjx")
    warp = " with Warp" if importlib.util.find_spec("warp") else ""
    print(f"  mjx       {f'MJX {mjx}{warp}' if mjx else 'not installed: pip install acpo[mjx]'}")
    import jax  # noqa: PLC0415

    devices = ", ".join(f"{d.platform}:{d.id} {d.device_kind}" for d in jax.devices())
    print(f"  JAX       {_version('jax')} on {devices}")
    return 0


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
