"""Every solver obeys a limit on the reward and on a cost.

One state, four actions tried equally often, with advantages (per step)

    action      a     b     c     d
    reward      2    −2     1    −1
    cost        2    −2    −1     1

Least cost alone prefers b, which gives up the reward; c is the action that lowers the cost and raises
the reward. Most reward alone prefers a, which is the costliest.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from bandit import CONFIG, batch, networks, solve

from acpo.config import Config, replace
from acpo.problem import Problem, max_reward, min_cost, projection
from acpo.solvers import interior_point, lagrangian, switching, trust_region

REWARD = np.array([2.0, -2.0, 1.0, -1.0])
COST = np.array([2.0, -2.0, -1.0, 1.0])
DATA = batch([REWARD.tolist(), COST.tolist()], returns=[10.0, 30.0])
STEPS = 10.0

READINGS = ("surrogate", "measured", "minibatch")
SOLVERS = [*READINGS, "lagrangian", "trust region", "switching"]


def least_cost(reward_limit: float) -> Problem:
    free = jnp.array([jnp.inf])
    return min_cost(jnp.array([True]), jnp.array(reward_limit), free, jnp.array(0.5))


def most_reward(budget: float) -> Problem:
    return max_reward(jnp.array([budget]))


def change(name: str, problem: Problem, multiplier: float = 1.035) -> tuple[float, float]:
    """How much one update changes the exact reward and cost of an episode.

    `multiplier` is what a Lagrangian has learned before this update of the limited signals.
    """
    config: Config = CONFIG
    state = None
    if name in READINGS:
        solver = interior_point.SOLVER
        config = replace(config, {"interior_point.reading": name})
    elif name == "lagrangian":
        solver = lagrangian.SOLVER
        state = lagrangian.init(config, *networks(1))
        state = state._replace(multipliers=jnp.full(2, multiplier), limited=problem.limited())
    elif name == "trust region":
        solver = trust_region.SOLVER
    else:
        solver = switching.SOLVER
        config = replace(config, {"switching.tolerance": 0.1})
    probabilities, _ = solve(solver, problem, DATA, config, state)
    return STEPS * float(probabilities @ REWARD), STEPS * float(probabilities @ COST)


@pytest.mark.parametrize("name", SOLVERS)
def test_without_a_reward_limit_least_cost_gives_up_the_reward(name):
    # Otherwise the test below could not fail.
    reward, cost = change(name, least_cost(-jnp.inf))
    assert cost < -1.0
    assert reward < -0.5


@pytest.mark.parametrize("name", SOLVERS)
def test_a_reward_at_its_limit_is_not_given_up(name):
    # 10 is measured and 9.99 must be kept. (Switching minds a limit once it is broken.)
    reward, cost = change(name, least_cost(10.2 if name == "switching" else 9.99))
    assert reward > -0.1
    if name in ("trust region", "lagrangian"):
        # What can be had at once, by c, is taken.
        assert cost < -0.5


@pytest.mark.parametrize("name", SOLVERS)
def test_a_reward_below_its_limit_is_raised(name):
    reward, _ = change(name, least_cost(13.0))
    assert reward > 0.5


@pytest.mark.parametrize("name", SOLVERS)
def test_without_a_cost_limit_most_reward_lets_the_cost_rise(name):
    reward, cost = change(name, most_reward(jnp.inf))
    assert reward > 1.0
    assert cost > 0.3


@pytest.mark.parametrize("name", SOLVERS)
def test_a_cost_at_its_limit_does_not_rise(name):
    reward, cost = change(name, most_reward(29.8 if name == "switching" else 30.01))
    assert cost < 0.1
    if name in ("trust region", "lagrangian"):
        assert reward > 0.5


@pytest.mark.parametrize("name", SOLVERS)
def test_a_cost_over_its_limit_is_lowered(name):
    _, cost = change(name, most_reward(27.0))
    assert cost < -0.5


@pytest.mark.parametrize("name", ["surrogate", "lagrangian", "trust region"])
def test_a_projection_mends_the_cost_and_stays_near_its_anchor(name):
    config = CONFIG
    solver = {
        "surrogate": interior_point.SOLVER,
        "lagrangian": lagrangian.SOLVER,
        "trust region": trust_region.SOLVER,
    }[name]
    state = None
    if name == "lagrangian":
        state = lagrangian.init(config, *networks(1))
        state = state._replace(multipliers=jnp.full(2, 3.0), limited=jnp.array([False, True]))
    # The shortest way to a lower cost leaves the reward's advantages alone: logits move along −cost.
    probabilities, _ = solve(solver, projection(jnp.array([27.0])), DATA, config, state)
    assert STEPS * probabilities @ COST < -0.5
    direction = np.log(probabilities) - np.log(probabilities).mean()
    cosine = -direction @ COST / np.linalg.norm(direction) / np.linalg.norm(COST)
    assert cosine > (0.99 if name == "trust region" else 0.9)  # Adam's steps are nearly signs
    # Without a limit it goes back to the anchor, wherever that is.
    away = batch([REWARD.tolist(), COST.tolist()], returns=[10.0, 30.0], anchor=(1.0, 0.0, 0.0, 0.0))
    resting = None if state is None else state._replace(multipliers=jnp.zeros(2))
    probabilities, _ = solve(solver, projection(jnp.array([jnp.inf])), away, config, resting)
    assert probabilities[0] > 0.26
    np.testing.assert_allclose(probabilities[1:], probabilities[1], atol=2e-3)
