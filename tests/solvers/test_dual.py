"""The dual of a trust-region step with several limits, against other people's optimisers.

maximise   gᵀx − ½w·xᵀHx     subject to  c + Bx ≤ 0,   ½xᵀHx ≤ δ
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from acpo.solvers import dual

SIZE = 12
"""Entries of x in random problems."""
ROWS = 10
"""Limits of every random problem; those beyond m are masked."""


@functools.partial(jax.jit, static_argnames="radius")
def _solve(q, r, s, c, radius, curvature):
    return dual.solve(q, r, s, c, radius, curvature)


def step(hessian, goal, rows, offsets, radius, curvature=0.0):
    """x and the solution it was built from."""
    inverse = np.linalg.inv(hessian)
    single = lambda value: jnp.asarray(value, jnp.float32)  # noqa: E731
    solution = _solve(
        single(goal @ inverse @ goal),
        single(rows @ inverse @ goal),
        single(rows @ inverse @ rows.T),
        single(offsets),
        radius,
        single(curvature),
    )
    pull = goal if bool(solution.feasible) else np.zeros_like(goal)
    x = inverse @ (pull - np.asarray(solution.multipliers) @ rows) / float(solution.scale)
    return x, solution


def problem(seed: int, limits: int, tight: float = 0.3):
    """A random problem; the offsets are between −tight and tight of what the trust region can move."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(SIZE, SIZE))
    hessian = factor @ factor.T / SIZE + 0.1 * np.eye(SIZE)
    goal = rng.normal(size=SIZE)
    rows = np.zeros((ROWS, SIZE))
    rows[:limits] = rng.normal(size=(limits, SIZE)) * 10.0 ** rng.uniform(-1, 2, size=(limits, 1))
    radius = 0.02
    reach = np.sqrt(2 * radius * np.einsum("mi,ij,mj->m", rows, np.linalg.inv(hessian), rows))
    offsets = np.where(reach > 0, rng.uniform(-tight, tight, size=ROWS) * reach, -1.0)
    return hessian, goal, rows, offsets, radius


def by_slsqp(hessian, goal, rows, offsets, radius, curvature=0.0):
    """The same by sequential quadratic programming in double precision, and whether it succeeded."""
    # In coordinates y = Lᵀx, with H = LLᵀ, the problem is well scaled; rows are brought to unit size.
    lower = np.linalg.cholesky(hessian)
    into = lambda vector: np.linalg.solve(lower, vector)  # noqa: E731
    aim, reach = into(goal), np.sqrt(2 * radius)
    kept = np.linalg.norm(rows, axis=1) > 0
    matrix = into(rows[kept].T).T
    sizes = np.linalg.norm(matrix, axis=1)
    matrix, shift = matrix / sizes[:, None], offsets[kept] / sizes / reach
    # y = reach·z
    for start in (0.0, 0.1, -0.1, 0.3 * aim / np.linalg.norm(aim)):
        result = minimize(
            lambda z: (-aim @ z + 0.5 * curvature * reach * z @ z) / np.linalg.norm(aim),
            np.zeros(SIZE) + start,
            jac=lambda z: (-aim + curvature * reach * z) / np.linalg.norm(aim),
            constraints=[
                {"type": "ineq", "fun": lambda z: -(shift + matrix @ z), "jac": lambda z: -matrix},
                {"type": "ineq", "fun": lambda z: np.array([1 - z @ z]), "jac": lambda z: -2 * z[None]},
            ],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-10},
        )
        if result.success:
            break
    return np.linalg.solve(lower.T, reach * result.x), result.success


def check(x, expected, data, curvature=0.0):
    """Every limit is kept to a thousandth of the trust region, and the goal is reached."""
    hessian, goal, rows, offsets, radius = data
    value = lambda v: goal @ v - 0.5 * curvature * v @ hessian @ v  # noqa: E731
    reach = np.sqrt(2 * radius * np.einsum("mi,ij,mj->m", rows, np.linalg.inv(hessian), rows))
    assert 0.5 * x @ hessian @ x <= radius * 1.002
    assert np.all(offsets + rows @ x <= 2e-3 * reach + 1e-9)
    most = np.sqrt(2 * radius * goal @ np.linalg.inv(hessian) @ goal)
    assert abs(value(x) - value(expected)) < 3e-3 * most


@pytest.mark.parametrize("limits", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("curvature", [0.0, 30.0])
def test_feasible_problems_are_solved_like_slsqp(limits, curvature):
    solved = 0
    for seed in range(6):
        data = problem(seed, limits)
        expected, success = by_slsqp(*data, curvature)
        x, solution = step(*data, curvature)
        if not success:
            continue
        solved += 1
        assert bool(solution.feasible)
        check(x, expected, data, curvature)
    assert solved >= 4


def test_curvature_matters_in_these_problems():
    data = problem(0, 3)
    flat, curved = step(*data)[0], step(*data, 30.0)[0]
    assert curved @ data[0] @ curved < 0.9 * flat @ data[0] @ flat


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_the_size_of_the_objective_does_not_matter(scale):
    hessian, goal, rows, offsets, radius = problem(3, 4)
    expected, success = by_slsqp(hessian, goal, rows, offsets, radius)
    assert success
    x, _ = step(hessian, scale * goal, rows, offsets, radius)
    check(x, expected, (hessian, goal, rows, offsets, radius))


def test_a_masked_row_changes_nothing():
    hessian, goal, rows, offsets, radius = problem(5, 4)
    x, _ = step(hessian, goal, rows, offsets, radius)
    alone, _ = step(hessian, goal, rows[:4], offsets[:4], radius)
    np.testing.assert_allclose(x, alone, rtol=1e-3, atol=1e-5)


def test_infeasible_problems_are_known_and_answered_by_the_shortest_way():
    # Unit circle; x₁ ≤ −2 cannot be: the step goes that way to the edge, whatever the goal.
    hessian, goal = np.eye(2), np.array([1.0, 5.0])
    x, solution = step(hessian, goal, np.array([[1.0, 0.0]]), np.array([2.0]), 0.5)
    assert not bool(solution.feasible)
    np.testing.assert_allclose(x, [-1.0, 0.0], atol=1e-4)
    # x₁ ≤ −2 and x₂ ≤ −2: the nearest point of the quarter plane is (−2, −2), so (−1, −1)/√2.
    x, solution = step(hessian, goal, np.eye(2), np.array([2.0, 2.0]), 0.5)
    assert not bool(solution.feasible)
    np.testing.assert_allclose(x, [-(0.5**0.5)] * 2, atol=1e-4)


@pytest.mark.parametrize("limits", [1, 4, 9])
def test_random_infeasible_problems_are_known(limits):
    # Every offset is 1.3 to 2 times what the trust region can move.
    for seed in range(3):
        hessian, goal, rows, offsets, radius = problem(seed, limits)
        reach = np.sqrt(2 * radius * np.einsum("mi,ij,mj->m", rows, np.linalg.inv(hessian), rows))
        offsets = np.where(reach > 0, (1.3 + 0.07 * np.arange(ROWS)) * reach, -1.0)
        x, solution = step(hessian, goal, rows, offsets, radius)
        assert not bool(solution.feasible)
        np.testing.assert_allclose(0.5 * x @ hessian @ x, radius, rtol=1e-2)
        # No violation is left as it was, in all: Σ (c + Bx)₊² falls.
        scaled = np.where(reach > 0, reach, 1.0)
        before = np.sum(np.maximum(offsets / scaled, 0) ** 2)
        assert np.sum(np.maximum((offsets + rows @ x) / scaled, 0) ** 2) < before


def test_two_limits_that_contradict_each_other_are_infeasible():
    rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
    x, solution = step(np.eye(2), np.array([1.0, 1.0]), rows, np.array([0.1, 0.1]), 0.5)
    assert not bool(solution.feasible)
    assert np.all(np.isfinite(x))


def test_two_limits_with_one_gradient():
    # x₁ ≤ 0.5 twice, and once x₁ ≤ 0.3: maximise x₁ + x₂ on the unit circle → (0.3, √0.91).
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    x, _ = step(np.eye(2), np.ones(2), rows, np.array([-0.5, -0.5, -0.6]), 0.5)
    np.testing.assert_allclose(x, [0.3, 0.91**0.5], atol=2e-3)


def closed_form(q, r, s, c, radius):
    """Achiam et al. (2017), Theorem 2: multipliers (λ, ν) of one limit, with A = q − r²/s and
    B = 2δ − c²/s; each candidate λ is cut to the interval its branch holds on."""
    a, b = q - r**2 / s, 2 * radius - c**2 / s
    if b < 0 and c < 0:  # the whole trust region keeps the limit
        return np.sqrt(q / (2 * radius)), 0.0
    # λc + r > 0: the limit binds; else it does not.
    edge = -r / c
    binding = (edge, np.inf) if c > 0 else (0.0, edge)
    slack = (0.0, edge) if c > 0 else (edge, np.inf)
    with_limit = np.clip(np.sqrt(a / b), *np.maximum(binding, 0))
    without = np.clip(np.sqrt(q / (2 * radius)), *np.maximum(slack, 0))
    tiny = 1e-300
    d_with = 0.5 * (a / (with_limit + tiny) + b * with_limit) - r * c / s
    d_without = 0.5 * (q / (without + tiny) + 2 * radius * without)
    scale = with_limit if d_with <= d_without else without
    return scale, max(0.0, (scale * c + r) / s)


@pytest.mark.parametrize(
    ("r", "c"),
    # q = 1, s = 1, δ = 0.5: the circle x₁ ≤ 1 with a limit at the angle arccos r.
    [(0.6, -0.2), (0.6, 1e-6), (0.6, 0.4), (0.6, -0.9), (-0.6, 0.5), (-0.6, -0.1), (0.95, 0.9)],
)
def test_one_limit_has_the_closed_form_of_cpo(r, c):
    rows = np.array([[r, np.sqrt(1 - r**2)]])
    scale, nu = closed_form(1.0, r, 1.0, c, 0.5)
    x, solution = step(np.eye(2), np.array([1.0, 0.0]), rows, np.array([c]), 0.5)
    np.testing.assert_allclose(solution.scale, scale, rtol=1e-3)
    np.testing.assert_allclose(solution.multipliers, [nu], rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose(x, (np.array([1.0, 0.0]) - nu * rows[0]) / scale, atol=2e-3)


def test_one_limit_by_hand():
    # Most x₁ on the unit circle with 0.6x₁ + 0.8x₂ ≤ 0.2: A = 0.64, B = 1 − 0.04 = 0.96,
    # λ = √(0.64/0.96) = 0.816497, ν = 0.6 − 0.2λ = 0.436701,
    # x = ((1 − 0.6ν)/λ, −0.8ν/λ) = (0.903836, −0.427877).
    x, solution = step(np.eye(2), np.array([1.0, 0.0]), np.array([[0.6, 0.8]]), np.array([-0.2]), 0.5)
    np.testing.assert_allclose(solution.scale, 0.816497, rtol=1e-4)
    np.testing.assert_allclose(solution.multipliers, [0.436701], rtol=1e-3)
    np.testing.assert_allclose(x, [0.903836, -0.427877], atol=1e-3)


def test_curvature_by_hand():
    # Most 0.5x₁ − ½(x₁² + x₂²): x₁ = 0.5, well inside the unit circle, Λ = w = 1 …
    x, solution = step(np.eye(2), np.array([0.5, 0.0]), np.zeros((1, 2)), np.array([-1.0]), 0.5, 1.0)
    np.testing.assert_allclose(x, [0.5, 0.0], atol=1e-4)
    np.testing.assert_allclose(solution.scale, 1.0, rtol=1e-4)
    # … and with x₁ ≤ 0.2 the multiplier is what is left of the slope: 0.5 − 0.2 = 0.3.
    x, solution = step(np.eye(2), np.array([0.5, 0.0]), np.array([[1.0, 0.0]]), np.array([-0.2]), 0.5, 1.0)
    np.testing.assert_allclose(x, [0.2, 0.0], atol=1e-4)
    np.testing.assert_allclose(solution.multipliers, [0.3], rtol=1e-3)


def test_a_projection_without_a_goal_takes_the_shortest_step():
    # At the anchor its pull is zero; 3x₁ + 4x₂ ≤ −1 is nearest at −(3, 4)/25.
    x, solution = step(np.eye(2), np.zeros(2), np.array([[3.0, 4.0]]), np.array([1.0]), 0.5, 1.0)
    assert bool(solution.feasible)
    np.testing.assert_allclose(x, [-0.12, -0.16], atol=1e-4)


def test_no_limits_at_all():
    x, solution = step(np.eye(2), np.array([3.0, 4.0]), np.zeros((0, 2)), np.zeros(0), 0.5)
    np.testing.assert_allclose(x, [0.6, 0.8], atol=1e-5)
    assert bool(solution.feasible)


def test_the_quadratic_programme_by_hand():
    # Least x² + y² − xy − bᵀ(x, y), ½ of [[2, −1], [−1, 2]]. With b = (1, 1): both free, x = y = 1.
    matrix = jnp.array([[2.0, -1.0], [-1.0, 2.0]])
    solve = jax.jit(dual.nonnegative_quadratic)
    np.testing.assert_allclose(solve(matrix, jnp.array([1.0, 1.0])), [1, 1], rtol=1e-5)
    # b = (1, −1): free they would be (1/3, −1/3); y stays at 0, x = ½.
    np.testing.assert_allclose(solve(matrix, jnp.array([1.0, -1.0])), [0.5, 0], atol=1e-6)
    # Nothing to gain.
    np.testing.assert_allclose(solve(matrix, jnp.array([-1.0, -1.0])), [0, 0], atol=1e-6)


def test_the_quadratic_programme_satisfies_its_optimality_conditions():
    rng = np.random.default_rng(0)
    solve = jax.jit(jax.vmap(dual.nonnegative_quadratic))
    factors = rng.normal(size=(200, 9, 9))
    matrices = factors @ factors.transpose(0, 2, 1) / 9 + 0.05 * np.eye(9)
    linears = rng.normal(size=(200, 9))
    values = np.asarray(
        solve(jnp.asarray(matrices, jnp.float32), jnp.asarray(linears, jnp.float32)), np.float64
    )
    slopes = np.einsum("nij,nj->ni", matrices, values) - linears
    assert values.min() >= 0
    assert slopes.min() > -2e-3
    assert np.abs(slopes * values).max() < 2e-2
    assert np.sum(values > 0) > 300
