"""What the Go1 asks of a learner: the paper's table for it, and the specification where that is silent."""

from __future__ import annotations

from typing import Any

from acpo.tasks.base import TRUST_REGION

BATCH = 16384
"""Steps in an iteration (paper)."""


def learner_settings(algo: str, num_envs: int) -> dict[str, Any]:
    """Settings of an algorithm by dotted name (spec 8).

    The horizon is what matters in `num_envs`: advantages reach 17 steps ahead, so 4096 short
    rollouts, as legged_gym has them, would leave those to the critics.
    """
    settings: dict[str, Any] = {
        "budget": 2.0,
        "rollout.envs": num_envs,
        "rollout.batch": BATCH,
        "rollout.returns": "steps",
        "network.normalise": False,
        # Noise of std 1 falls in a fifth of 500-step trials, of std 0.5 in none.
        "network.log_std": -0.7,
        "ppo.learning_rate": 3e-3,
        "critic.learning_rate": 3e-3,
        "ppo.passes": 2,
        "ppo.minibatch": 4096,
        "adversarial.max_reward": 20,
        "adversarial.min_cost": 10,
    }
    if algo in TRUST_REGION:  # many small steps: the paper's rate is not for those
        del settings["critic.learning_rate"]
    return settings
