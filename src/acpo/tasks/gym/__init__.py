"""Gymnasium both ways: other people's environments in, ours out.

`from_path` runs any Gymnasium environment with costs as a task; `outgoing` is what `gymnasium.make`
and `gymnasium.make_vec` build from our ids (`acpo.catalogue`). Importing this module loads neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acpo.tasks.gym.incoming import GymnasiumTask


def from_path(path: str, num_envs: int, **options: Any) -> GymnasiumTask:
    """A batch task from "package.module:factory", where `factory()` gives one environment.

    See `acpo.tasks.gym.incoming.GymnasiumTask` for the options.
    """
    from acpo.tasks.gym.incoming import from_path as build  # noqa: PLC0415

    return build(path, num_envs, **options)
