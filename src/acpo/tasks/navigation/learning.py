"""What the navigation tasks ask of a learner, where that is not `Config`'s own."""

from __future__ import annotations

from typing import Any

from acpo.tasks.base import TRUST_REGION


def learner_settings(algo: str, num_envs: int) -> dict[str, Any]:
    """Settings of an algorithm by dotted name; `--preset paper` has the paper's.

    Its minibatches of 64 make 12500 small steps an iteration, and twenty or forty passes learn the
    noise of a batch by heart: five get further. Costs are looked at over a longer time than the reward:
    what keeps a robot out of a hazard was done long before.
    """
    settings: dict[str, Any] = {
        "rollout.envs": num_envs,
        "rollout.returns": "steps",
        "critic.learning_rate": 1e-3,
        "advantage.cost_discount": 0.995,
        "advantage.cost_trace": 0.97,
        # A cost this noisy comes down slowly, and only while steps are large and actions vary.
        "adversarial.patience": 0.1,
        "adversarial.deadline": 0.3,
    }
    if algo not in TRUST_REGION:
        settings |= {"ppo.minibatch": 500, "ppo.passes": 5, "ppo.learning_rate": 1e-3}
    return settings
