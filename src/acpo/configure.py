"""From what a person asks for to a complete, checked `Config`.

Later settings win: `Config`'s own defaults, the algorithm's, the task's, a preset's, the user's.
Whatever is wrong is told in one sentence, before anything is written.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from typing import Any, Literal

import numpy as np

from acpo import algorithms
from acpo.config import Config, replace
from acpo.errors import UserError, nearest
from acpo.tasks.base import TaskSpec

Domain = Literal["navigation", "quadruped"]
PRESETS = ("default", "paper")

SPECIFIC = ("ppo", "trust_region", "interior_point", "lagrangian", "switching", "curriculum", "adversarial")
"""Groups that only some algorithms read; `Algorithm.sections` names them."""

_POSITIVE = {
    "steps", "seeds", "rollout.envs", "rollout.batch", "critic.passes", "critic.minibatch", "ppo.passes",
    "ppo.minibatch", "ppo.kl", "ppo.max_grad_norm", "trust_region.kl", "trust_region.cg_iterations",
    "interior_point.kappa", "interior_point.final_kappa", "interior_point.penalty_max",
    "interior_point.gain", "curriculum.end",
    "adversarial.max_reward", "adversarial.min_cost", "adversarial.projection", "adversarial.window",
}  # fmt: skip
_AT_MOST_ONE = {
    "advantage.discount", "advantage.trace", "advantage.cost_discount", "advantage.cost_trace",
    "ppo.final_learning_rate", "ppo.clip", "interior_point.gain", "trust_region.backtrack", "curriculum.end",
    "adversarial.patience", "adversarial.deadline", "adversarial.settle",
}  # fmt: skip
_MAY_BE_NEGATIVE = {"network.log_std"}


def fields(config_type: type = Config, prefix: str = "") -> dict[str, Any]:
    """The type of every single field by its dotted name."""
    found: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(config_type).items():
        if dataclasses.is_dataclass(hint):
            found |= fields(typing.cast(type, hint), f"{prefix}{name}.")
        else:
            found[prefix + name] = hint
    return found


FIELDS = fields()


def build(
    algo: str,
    task: str,
    defaults: dict[str, Any] | None = None,
    preset: str = "default",
    changes: dict[str, Any] | None = None,
) -> Config:
    """The configuration of a run; `defaults` are the task's, `changes` the user's by dotted name.

    Values may be strings, as a command line has them.
    """
    algorithm = algorithms.get(algo)
    if preset not in PRESETS:
        raise UserError(f"There is no preset '{preset}'; {nearest(preset, PRESETS)}")
    asked = {name: coerce(name, value) for name, value in (changes or {}).items()}
    _check_sections(algorithm, asked)
    layers = [algorithm.defaults, defaults or {}]
    if preset == "paper":
        layers.append(paper(algo, "quadruped" if task.startswith("Go1") else "navigation"))
    config = Config(task=task, algo=algo)
    for layer in (*layers, asked):
        config = replace(config, {name: coerce(name, value) for name, value in layer.items()})
    _check_values(config)
    _check_batch(config, algorithm)
    return config


def coerce(name: str, value: Any) -> Any:
    """`value` as the type of the field `name`, or a sentence that says what it should be."""
    if name not in FIELDS:
        _explain_unknown(name)
    return convert(name, FIELDS[name], value)


def _explain_unknown(name: str) -> None:
    """Raise the sentence for a name that is no field."""
    groups = {known.partition(".")[0] for known in FIELDS if "." in known}
    if name in groups:
        example = next(known for known in FIELDS if known.startswith(f"{name}."))
        raise UserError(f"'{name}' is a group of fields; give one of them, such as '{example}'.")
    tails = {known.rpartition(".")[2]: known for known in FIELDS}
    if name in tails:
        raise UserError(f"There is no field '{name}'; did you mean '{tails[name]}'?")
    group, dot, _ = name.partition(".")
    known = [f for f in FIELDS if f.startswith(f"{group}.")] if dot and group in groups else FIELDS
    raise UserError(f"There is no field '{name}'; {_closest(name, known)}")


def _closest(name: str, known: Any) -> str:
    """`nearest`, without reciting ninety fields when none is close."""
    hint = nearest(name, known)
    return hint if hint.startswith("did") or len(list(known)) <= 16 else "`acpo train --help` lists all."


def convert(name: str, hint: Any, value: Any) -> Any:
    """`value`, which may be a string, as the type `hint`; `name` is for the sentence if it is none."""
    origin = typing.get_origin(hint)
    if origin is Literal:
        choices = typing.get_args(hint)
        if value not in choices:
            raise UserError(f"{name} is one of {', '.join(choices)}, not {value!r}.")
        return value
    if origin is tuple:
        return _convert_tuple(name, typing.get_args(hint)[0], value)
    if hint is bool:
        return _convert_bool(name, value)
    if hint in (int, float):
        return _convert_number(name, hint, value)
    if not isinstance(value, str):
        raise UserError(f"{name} is a text, not {value!r}.")
    return value


def _convert_bool(name: str, value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise UserError(f"{name} is true or false, not {value!r}.")


def _convert_number(name: str, hint: type, value: Any) -> int | float:
    kind = "a whole number" if hint is int else "a number"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, int, float, np.number)):
        raise UserError(f"{name} must be {kind}, not {value!r}.")
    try:
        number = float(value)
    except ValueError:
        raise UserError(f"{name} must be {kind}, not {value!r}.") from None
    if not math.isfinite(number):
        raise UserError(f"{name} must be finite, not {value!r}.")
    if hint is float:
        return number
    if number != int(number):
        raise UserError(f"{name} must be a whole number, not {value!r}.")
    return int(value) if isinstance(value, (int, np.integer)) else int(number)


def _convert_tuple(name: str, item: Any, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        value = [part for part in value.replace(",", " ").split() if part]
    elif isinstance(value, np.ndarray):
        value = np.atleast_1d(value).tolist()
    elif not isinstance(value, (list, tuple)):
        value = [value]
    if typing.get_origin(item) is not tuple:
        return tuple(convert(name, item, part) for part in value)
    pairs = [part.split(":") if isinstance(part, str) else part for part in value]
    if any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in pairs):
        raise UserError(f"{name} is pairs such as 0:2,1:1, not {value!r}.")
    return tuple(tuple(convert(name, float, number) for number in pair) for pair in pairs)


def is_read(algo: str, name: str) -> bool:
    """Whether a field by its dotted name matters to an algorithm."""
    group = name.partition(".")[0]
    return group not in SPECIFIC or group in algorithms.get(algo).sections


def _check_sections(algorithm: algorithms.Algorithm, asked: dict[str, Any]) -> None:
    """A setting without effect would be a silent mistake."""
    for name in asked:
        if not is_read(algorithm.name, name):
            read = ", ".join(algorithm.sections)
            raise UserError(f"{algorithm.name} does not read '{name}'; of these groups it reads {read}.")


def _check_values(config: Config) -> None:
    for name, hint in FIELDS.items():
        if hint not in (int, float):
            continue
        value = get(config, name)
        if name in _POSITIVE and value <= 0:
            least = "at least 1" if hint is int else "above 0"
            raise UserError(f"{name} must be {least}, not {value}.")
        if value < 0 and name not in _MAY_BE_NEGATIVE:
            raise UserError(f"{name} must not be negative, but is {value}.")
        if name in _AT_MOST_ONE and value > 1:
            raise UserError(f"{name} must be at most 1, but is {value}.")
    # Counters and random keys have 32 bits.
    if config.iterations >= 2**31:
        raise UserError(f"steps must be fewer than 2^31 batches, not {config.steps}.")
    if config.seed + config.seeds > 2**31:
        raise UserError(f"seed must be below 2^31, not {config.seed}.")
    if any(units < 1 for units in config.network.hidden):
        raise UserError(f"network.hidden needs at least 1 unit in each layer, not {config.network.hidden}.")
    if config.curriculum.shape == "knots" or config.curriculum.knots:
        _check_knots(config)


def _check_knots(config: Config) -> None:
    knots = config.curriculum.knots
    times = [time for time, _ in knots]
    if len(knots) < 2 or config.curriculum.shape != "knots":
        raise UserError(
            "curriculum.knots needs curriculum.shape=knots and at least two pairs, such as 0:2,1:1."
        )
    if times != sorted(set(times)) or times[0] < 0 or times[-1] > 1:
        raise UserError(f"The times of curriculum.knots must rise within 0 to 1, not {times}.")
    if any(multiple < 0 for _, multiple in knots):
        raise UserError("The multiples of curriculum.knots must not be negative.")


def _check_batch(config: Config, algorithm: algorithms.Algorithm) -> None:
    rollout = config.rollout
    if rollout.batch % rollout.envs:
        raise UserError(
            f"rollout.batch ({rollout.batch}) must be a multiple of rollout.envs ({rollout.envs})."
        )
    name = "ppo.minibatch" if "ppo" in algorithm.sections else "critic.minibatch"
    if get(config, name) > rollout.batch:
        raise UserError(f"{name} ({get(config, name)}) is larger than rollout.batch ({rollout.batch}).")


def get(config: Config, name: str) -> Any:
    """The value of a field by its dotted name."""
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def desired_budgets(config: Config, spec: TaskSpec) -> tuple[Config, np.ndarray]:
    """The configuration with one budget per cost of the task, and these as an array [K].

    Algorithms without limits may go without budgets; these are then infinite.
    """
    budget, costs = config.budget, spec.costs
    for value in budget:
        if value < 0:
            raise UserError(f"A budget is a cost per episode and cannot be negative: {value:g}.")
    if not budget:
        if algorithms.get(config.algo).constrained and costs:
            flags = " ".join("--budget …" for _ in costs)
            raise UserError(
                f"{config.task} has {_count(len(costs), 'cost')} ({', '.join(costs)}) and {config.algo}"
                f" needs a budget for each: {flags}."
            )
        return config, np.full(len(costs), np.inf)
    if not costs:
        raise UserError(f"{config.task} has no costs, so there is nothing to give a budget for.")
    if len(budget) == 1:
        budget = budget * len(costs)
    if len(budget) != len(costs):
        raise UserError(
            f"{config.task} has {_count(len(costs), 'cost')} ({', '.join(costs)}), but"
            f" {_count(len(budget), 'budget')} {'was' if len(budget) == 1 else 'were'} given."
        )
    return dataclasses.replace(config, budget=budget), np.array(budget)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def paper(algo: str, domain: Domain) -> dict[str, Any]:
    """The paper's settings of an algorithm, field by field: its hyper-parameter tables, and
    OmniSafe 0.5.0 where the paper ran its code.

    Algorithms that the paper only announces (acpo-lag, acpo-cpo) combine the columns they are
    made of.
    """
    quadruped = domain == "quadruped"
    common = {
        "rollout.batch": 16384 if quadruped else 20000,
        "rollout.envs": 512 if quadruped else 100,
        "rollout.returns": "episodes",
        "rollout.episode_window": 50,
        "network.hidden": (64, 64),
        "network.activation": "tanh",
        "network.normalise": True,
        "advantage.discount": 0.99,
        "advantage.cost_discount": 0.99,
        "advantage.trace": 0.95,
        "advantage.cost_trace": 0.95,
        "advantage.surrogate_scale": "one",
        "critic.error_unit": "absolute",
    }
    rate = 3e-3 if quadruped else 3e-4
    columns: dict[str, dict[str, Any]] = {
        "ppo": {
            "ppo.learning_rate": rate,
            "critic.learning_rate": rate,
            "ppo.passes": 2 if quadruped else 40,
            "ppo.minibatch": 64,
            "ppo.clip": 0.2,
            "ppo.kl": 0.02,
            "ppo.overshoot": 0.0,
        },
        "trust_region": {
            "critic.learning_rate": 1e-3,
            "critic.passes": 10,
            "trust_region.kl": 0.01,
            "trust_region.damping": 0.01,
            "trust_region.backtrack": 0.8,
            "trust_region.backtracks": 15,
            "trust_region.cg_iterations": 15,
        },
        "interior_point": {
            "interior_point.reading": "measured",
            "interior_point.calibrate": False,
            "interior_point.gain": 1.0,
            "interior_point.kappa": 0.01,
            "interior_point.final_kappa": 1.0,
            "interior_point.kappa_unit": "absolute",
            "interior_point.objective_unit": "signal",
            "interior_point.penalty_max": 1.0 if quadruped else 25.0,
        },
        "lagrangian": {
            "lagrangian.initial": 1e-3,
            "lagrangian.learning_rate": 0.035,
            "lagrangian.maximum": 1000.0,
        },
        "switching": {"switching.tolerance": 2.0, "switching.tolerance_unit": "absolute"},
        "adversarial": {
            "adversarial.max_reward": 20 if quadruped else 10,
            "adversarial.min_cost": 10 if quadruped else 5,
            "adversarial.convergence": "queue",
            "adversarial.noise": 0.0,
            "adversarial.patience": 0.0,
            "adversarial.deadline": 0.0,
            "adversarial.settle": 0.0,
            "adversarial.guard_satisfied": False,
            # With one cost the paper's runs did not skip; its section on several costs does.
            "adversarial.skip_satisfied": quadruped,
            "adversarial.monotone": False,
            "adversarial.reward_slack": 0.0,
            "adversarial.margin": 0.0,
            "adversarial.lowered": 0.0,
            "adversarial.raised": 1e9,  # no bound; values must be finite
        },
    }
    settings = dict(common)
    for section in algorithms.get(algo).sections:
        settings |= columns.get(section, {})
    return settings


def to_dict(config: Config) -> dict[str, Any]:
    """Nested plain values, tuples as lists: what `config.yaml` holds."""

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return [plain(item) for item in value] if isinstance(value, tuple) else value

    return plain(config)


def from_dict(values: Any) -> Config:
    """The inverse of `to_dict`, with every value checked."""
    if not isinstance(values, dict):
        raise UserError("A configuration is a table of fields.")
    flat: dict[str, Any] = {}
    for name, value in values.items():
        inner = value if isinstance(value, dict) else {None: value}
        flat |= {f"{name}.{key}" if key is not None else str(name): item for key, item in inner.items()}
    config = replace(Config(), {name: coerce(name, value) for name, value in flat.items()})
    _check_values(config)
    _check_batch(config, algorithms.get(config.algo))
    return config
