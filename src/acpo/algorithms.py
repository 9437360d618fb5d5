"""Algorithms by name: a schedule, a solver, and the settings that differ from the common ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from acpo.errors import UserError, nearest
from acpo.schedules import adversarial, curriculum, fixed
from acpo.schedules.base import Schedule
from acpo.solvers import interior_point, lagrangian, switching, trust_region
from acpo.solvers.base import Solver


@dataclass(frozen=True)
class Algorithm:
    """One point in the product of schedules and solvers."""

    name: str
    summary: str
    schedule: Schedule
    solver: Solver
    sections: tuple[str, ...]
    """The groups of `Config` it reads besides those all algorithms read."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Fields by dotted name that differ from `Config`'s."""
    constrained: bool = True


_SECOND_ORDER = {"critic.learning_rate": 1e-3}

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            "acpo",
            "alternates most-reward and least-cost stages and moves its budgets; interior point",
            adversarial.SCHEDULE,
            interior_point.SOLVER,
            ("ppo", "interior_point", "adversarial"),
        ),
        Algorithm(
            "acpo-lag",
            "ACPO's schedule with learned multipliers",
            adversarial.SCHEDULE,
            lagrangian.SOLVER,
            ("ppo", "lagrangian", "adversarial"),
        ),
        Algorithm(
            "acpo-cpo",
            "ACPO's schedule with CPO's trust-region steps",
            adversarial.SCHEDULE,
            trust_region.SOLVER,
            ("trust_region", "adversarial"),
            _SECOND_ORDER,
        ),
        Algorithm(
            "ipo",
            "interior-point policy optimisation under fixed budgets",
            fixed.SCHEDULE,
            interior_point.SOLVER,
            ("ppo", "interior_point"),
        ),
        Algorithm(
            "ipo-c",
            "IPO with budgets that tighten along a set path",
            curriculum.SCHEDULE,
            interior_point.SOLVER,
            ("ppo", "interior_point", "curriculum"),
        ),
        Algorithm(
            "ppo-lag",
            "PPO with learned multipliers under fixed budgets",
            fixed.SCHEDULE,
            lagrangian.SOLVER,
            ("ppo", "lagrangian"),
        ),
        Algorithm(
            "cpo",
            "constrained policy optimisation: trust-region steps under fixed budgets",
            fixed.SCHEDULE,
            trust_region.SOLVER,
            ("trust_region",),
            _SECOND_ORDER,
        ),
        Algorithm(
            "crpo",
            "natural-gradient steps on the reward, or on a cost that is over its budget",
            fixed.SCHEDULE,
            switching.SOLVER,
            ("trust_region", "switching"),
            _SECOND_ORDER,
        ),
        Algorithm(
            "ppo",
            "PPO without limits, to show what obeying them costs",
            fixed.UNLIMITED,
            interior_point.SOLVER,
            ("ppo",),
            constrained=False,
        ),
        Algorithm(
            "trpo",
            "TRPO without limits",
            fixed.UNLIMITED,
            trust_region.SOLVER,
            ("trust_region",),
            _SECOND_ORDER,
            constrained=False,
        ),
    )
}


def get(name: str) -> Algorithm:
    if name not in ALGORITHMS:
        raise UserError(f"There is no algorithm '{name}'; {nearest(name, ALGORITHMS)}")
    return ALGORITHMS[name]
