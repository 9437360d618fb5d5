"""What the navigation tasks ask of a learner, where that is not `Config`'s own."""

from __future__ import annotations

from typing import Any

from acpo.tasks.base import TRUST_REGION


def learner_settings(algo: str, num_envs: int) -> dict[str, Any]:
    """Settings of an algorithm by dotted name.

    The paper's minibatches of 64 make 12500 small steps an iteration. A thousand samples a step
    and a larger rate come to the same place in a tenth of the time; `--preset paper` has the
    paper's.
    """
    settings: dict[str, Any] = {
        "rollout.envs": num_envs,
        "rollout.returns": "steps",
        "critic.learning_rate": 1e-3,
    }
    if algo not in TRUST_REGION:
        settings |= {"ppo.minibatch": 500, "ppo.passes": 5, "ppo.learning_rate": 1e-3}
    return settings
