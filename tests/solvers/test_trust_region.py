"""Natural gradients and CPO's step against dense algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bandit import CONFIG, QUICK, networks
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from acpo.config import Config, NetworkConfig, replace
from acpo.learning.batch import Batch
from acpo.learning.networks import Policy
from acpo.problem import max_reward
from acpo.solvers import natural_gradient, ppo, trust_region
from acpo.tasks.base import Box, TaskSpec

DAMPING = 0.05


def policies() -> dict[str, Policy]:
    key = jax.random.PRNGKey(3)
    box = TaskSpec("box", 3, Box(2), (), 10)
    small = NetworkConfig(hidden=(4,), log_std=-0.5)
    discrete, _ = networks(0, actions=3, observation=3)
    noise = jax.tree.map(lambda leaf: jax.random.normal(key, leaf.shape), discrete)
    return {"Gaussian": Policy(box, small, key=key), "categorical": noise}


OBSERVATIONS = jax.random.normal(jax.random.PRNGKey(0), (7, 3))


def dense_hessian(policy: Policy, observations: jax.Array) -> np.ndarray:
    """Of the batch's mean KL(old ‖ ·) at old, by differentiating twice."""
    vector, unravel = ravel_pytree(policy)
    old = policy.distribution(observations)

    def kl(moved: jax.Array) -> jax.Array:
        return jnp.mean(old.kl(unravel(moved).distribution(observations)))  # type: ignore[arg-type]

    return np.asarray(jax.jit(jax.hessian(kl))(vector), np.float64)


@pytest.mark.parametrize("kind", ["Gaussian", "categorical"])
def test_the_fisher_product_is_the_hessian_of_the_kl(kind):
    policy = policies()[kind]
    flat = natural_gradient.flatten(policy)
    product = natural_gradient.fisher_product(flat, OBSERVATIONS, DAMPING)
    size = flat.vector.shape[0]
    dense = np.asarray(jax.jit(jax.vmap(product))(jnp.eye(size)))
    expected = dense_hessian(policy, OBSERVATIONS) + DAMPING * np.eye(size)
    np.testing.assert_allclose(dense, expected, atol=2e-5)
    assert np.abs(expected - DAMPING * np.eye(size)).max() > 0.1


def test_the_compiled_fisher_product_is_right_at_full_size():
    # jaxlib 0.10.2 compiles p·(t − Σ p·t) of several vectors t over one batch into something else
    # (jax issue 39103), only where there are many samples: every trust-region step on a table was wrong.
    policy, _ = networks(0, actions=3, observation=80)
    policy = jax.tree.map(lambda leaf: jax.random.normal(jax.random.PRNGKey(1), leaf.shape), policy)
    states = np.random.default_rng(0).integers(0, 80, 4000)
    observations = jax.nn.one_hot(states, 80)
    flat = natural_gradient.flatten(policy)
    vectors = np.random.default_rng(1).normal(size=(4, 243))
    products = jax.jit(
        lambda vector, seen, many: jax.vmap(
            natural_gradient.fisher_product(flat._replace(vector=vector), seen, DAMPING)
        )(many)
    )(flat.vector, observations, jnp.asarray(vectors, jnp.float32))
    # H = Σ over states of their share · (diag p − p pᵀ) on (weights of the state) + (biases).
    p = np.asarray(jax.nn.softmax(policy.distribution(jnp.eye(80)).logits), np.float64)
    share = np.bincount(states, minlength=80) / len(states)
    moved = vectors[:, :240].reshape(4, 80, 3) + vectors[:, None, 240:]
    curved = share[:, None] * p * (moved - np.sum(p * moved, axis=-1, keepdims=True))
    expected = np.concatenate([curved.reshape(4, 240), curved.sum(axis=1)], axis=1) + DAMPING * vectors
    np.testing.assert_allclose(products, expected, atol=1e-6)


def test_what_overlaps_say_of_a_step_is_true_of_it_however_few_the_iterations():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(12, 12))
    matrix = factor @ factor.T / 12 + 0.1 * np.eye(12)
    gradients = rng.normal(size=(3, 12))
    gradients[2] = gradients[1] + 0.02 * rng.normal(size=12)  # nearly parallel
    weights = np.array([1.0, 30.0, -29.0])
    single = jnp.asarray(matrix, jnp.float32)
    for iterations, exact in ((3, False), (25, True)):
        span = natural_gradient.span(lambda x: single @ x, jnp.asarray(gradients, jnp.float32), iterations)
        overlaps = np.asarray(span.overlaps, np.float64)
        step = np.asarray(span.step(jnp.asarray(weights, jnp.float32)), np.float64)
        np.testing.assert_allclose(gradients @ step, overlaps @ weights, rtol=2e-3)
        np.testing.assert_allclose(step @ matrix @ step, weights @ overlaps @ weights, rtol=2e-3)
        inverse = gradients @ np.linalg.solve(matrix, gradients.T)
        assert np.allclose(overlaps, inverse, rtol=1e-3) == exact
    # A gradient of zero takes no part.
    span = natural_gradient.span(lambda x: single @ x, jnp.zeros((2, 12)), 5)
    np.testing.assert_array_equal(span.step(jnp.ones(2)), np.zeros(12))


def test_conjugate_gradient_solves_like_a_dense_solver():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(12, 12))
    matrix = factor @ factor.T / 12 + 0.1 * np.eye(12)
    targets = rng.normal(size=(4, 12)) * 10.0 ** np.array([[-6], [-2], [0], [3]])
    single = jnp.asarray(matrix, jnp.float32)
    solve = jax.jit(jax.vmap(lambda v: natural_gradient.conjugate_gradient(lambda x: single @ x, v, 25)))
    found = np.asarray(solve(jnp.asarray(targets, jnp.float32)))
    for x, target in zip(found, targets, strict=True):
        np.testing.assert_allclose(x, np.linalg.solve(matrix, target), rtol=2e-3, atol=2e-3 * np.abs(x).max())
    # A zero target, and more iterations than needed, give zero and no NaN.
    np.testing.assert_array_equal(solve(jnp.zeros((4, 12))), np.zeros((4, 12)))


# A policy over two states and three actions, with advantages that differ by state; the reward's and
# two costs'. Rows: state 0 then state 1; columns: actions.
ADVANTAGES = np.array(
    [
        [[1.0, -1.0, 0.0], [0.5, 0.5, -1.0]],
        [[1.0, 0.0, -1.0], [-0.5, 1.0, -0.5]],
        [[-1.0, 0.5, 0.5], [0.0, 1.0, -1.0]],
    ]
)
COUNTS = np.array([[30, 30, 30], [20, 20, 20]])
UNIT = np.array([20.0, 10.0, 10.0])


def two_states(returns: list[float]) -> tuple[Policy, Batch]:
    policy, _ = networks(2, actions=3, observation=2)
    states, actions = (np.repeat(index.ravel(), COUNTS.ravel()) for index in np.indices((2, 3)))
    observations = jax.nn.one_hot(states, 2)
    old = policy.distribution(observations)
    return policy, Batch(
        observations=observations,
        actions=jnp.asarray(actions),
        log_probs=old.log_prob(jnp.asarray(actions)),
        old=old,
        anchor=None,
        advantages=jnp.asarray(ADVANTAGES[:, states, actions].T, jnp.float32),
        targets=jnp.zeros((len(states), 3)),
        returns=jnp.array(returns),
        unit=jnp.asarray(UNIT, jnp.float32),
    )


SMALL = replace(CONFIG, {"trust_region.kl": 1e-4, "trust_region.damping": 0.01})
_step = jax.jit(trust_region.policy_step, static_argnums=0, compiler_options=QUICK)


def taken(config, returns, budgets):
    """The step in the policy's parameters, what was reported, and the linear model it should solve."""
    policy, batch = two_states(returns)
    new, metrics = _step(config, policy, max_reward(jnp.array(budgets)), batch, jnp.zeros(()))
    step = np.asarray(ravel_pytree(new)[0] - ravel_pytree(policy)[0], np.float64)
    # Gradients of the surrogates with respect to the logits z of a uniform policy, by hand:
    # ∂/∂z[s, a] = n[s]/N · p(a)·(A[s, a] − mean of A[s]) and p = 1/3; a linear network on a one-hot
    # adds a weight per state and action and one bias per action.
    share = COUNTS.sum(axis=1) / COUNTS.sum()
    logits = share[None, :, None] / 3 * (ADVANTAGES - ADVANTAGES.mean(axis=2, keepdims=True))
    gradients = np.concatenate([logits.reshape(3, 6), logits.sum(axis=1)], axis=1)
    hessian = dense_hessian(policy, batch.observations)
    return step, metrics, gradients, hessian


def same_order_as_ravel():
    """The hand-made gradients list weights before biases."""
    policy, _ = networks(2, actions=3, observation=2)
    leaves = jax.tree.leaves(policy)
    assert [leaf.shape for leaf in leaves] == [(2, 3), (3,)]


@pytest.mark.parametrize(
    ("returns", "budgets"),
    [
        # Budgets are in units of episodes; the trust region moves costs by about 0.1.
        ([0.0, 5.0, 5.0], [9.0, 9.0]),  # neither limit matters
        ([0.0, 5.0, 5.0], [5.01, 9.0]),  # the first binds
        ([0.0, 5.0, 5.0], [5.0, 5.005]),  # both near
        ([0.0, 5.0, 5.0], [4.97, 5.5]),  # broken, can be mended
    ],
)
def test_a_step_solves_the_quadratic_model(returns, budgets):
    same_order_as_ravel()
    step, metrics, gradients, hessian = taken(SMALL, returns, budgets)
    damped = hessian + 0.01 * np.eye(9)
    radius = 1e-4
    violations = np.array(returns[1:]) - budgets
    rows = gradients[1:] * UNIT[1:, None]
    lower = np.linalg.cholesky(damped)
    reach = np.sqrt(2 * radius)
    into = lambda vectors: np.linalg.solve(lower, vectors.T).T * reach  # noqa: E731
    aim, limits = into(gradients[0]), into(rows)
    scale = np.abs(violations) + np.linalg.norm(limits, axis=1)
    solved = minimize(
        lambda z: -aim @ z / np.linalg.norm(aim),
        np.zeros(9),
        jac=lambda z: -aim / np.linalg.norm(aim),
        constraints=[
            {"type": "ineq", "fun": lambda z: -(violations + limits @ z) / scale},
            {"type": "ineq", "fun": lambda z: 1 - z @ z, "jac": lambda z: -2 * z},
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert solved.success
    expected = np.linalg.solve(lower.T, reach * solved.x)
    assert bool(metrics["feasible"])
    fraction = float(metrics["step_fraction"])
    assert fraction > 0.5
    np.testing.assert_allclose(step, fraction * expected, atol=0.02 * np.abs(expected).max())


def test_a_hopeless_violation_is_recovered_from():
    # 3 over the first budget; the trust region can mend about 0.1: pure descent of that cost,
    # along H⁻¹ of its gradient, to the edge of the trust region.
    step, metrics, gradients, hessian = taken(SMALL, [0.0, 5.0, 5.0], [2.0, 9.0])
    assert not bool(metrics["feasible"])
    away = -np.linalg.solve(hessian + 0.01 * np.eye(9), gradients[1])
    np.testing.assert_allclose(step / np.linalg.norm(step), away / np.linalg.norm(away), atol=0.01)
    assert float(metrics["surrogates"][1]) < -0.01
    assert 0.3e-4 < float(metrics["kl"]) <= 1e-4


def test_a_recovery_keeps_searching():
    # The same with an entropy bonus, from a policy that prefers one action: the cost still falls, over
    # the whole trust region, and the entropy falls by less.
    found = []
    for bonus in (0.0, 0.3):
        policy, batch = two_states([0.0, 5.0, 5.0])
        policy = jax.tree.map(lambda leaf: leaf.at[..., 0].add(0.5), policy)
        old = policy.distribution(batch.observations)
        batch = batch._replace(old=old, log_probs=old.log_prob(batch.actions))
        config = replace(SMALL, {"trust_region.entropy": bonus})
        new, metrics = _step(config, policy, max_reward(jnp.array([2.0, 9.0])), batch, jnp.zeros(()))
        assert not bool(metrics["feasible"])
        assert float(metrics["surrogates"][1]) < -0.01
        assert 0.3e-4 < float(metrics["kl"]) <= 1e-4
        found.append(float(jnp.mean(new.distribution(batch.observations).entropy() - old.entropy())))
    assert found[1] > found[0] + 1e-4


def test_steps_stay_inside_the_trust_region():
    for radius in (1e-3, 0.3):
        config = replace(SMALL, {"trust_region.kl": radius, "trust_region.damping": 1e-4})
        _, metrics, *_ = taken(config, [0.0, 5.0, 5.0], [9.0, 9.0])
        assert 0 < float(metrics["kl"]) <= radius
        assert float(metrics["surrogates"][0]) > 0


def search(accept):
    policy, batch = two_states([0.0, 5.0, 5.0])
    flat = natural_gradient.flatten(policy)
    step = jnp.full(9, 0.1).at[0].set(1.0)
    return natural_gradient.line_search(flat, step, batch, accept, 0.5, 4), flat.vector


def test_the_line_search_takes_the_first_step_that_is_accepted():
    # The full step has its KL; half of it about a quarter: accepting under a third of it takes half.
    (_, seen, fraction), _ = search(lambda _: jnp.array(True))
    assert float(fraction) == 1.0
    full = float(seen.kl)
    (policy, seen, fraction), old = search(lambda candidate: candidate.kl < full / 3)
    assert float(fraction) == 0.5
    np.testing.assert_allclose(ravel_pytree(policy)[0] - old, jnp.full(9, 0.05).at[0].set(0.5), rtol=1e-6)
    assert 0 < float(seen.kl) < full / 3


def test_the_line_search_gives_up_and_leaves_the_policy_as_it_is():
    (policy, seen, fraction), old = search(lambda _: jnp.array(False))
    assert float(fraction) == 0.0
    np.testing.assert_array_equal(ravel_pytree(policy)[0], old)
    assert float(seen.kl) == 0.0
    # Four steps are tried: 1, ½, ¼, ⅛. What would be accepted only at 1/16 is not.
    (_, _, fraction), _ = search(lambda candidate: candidate.kl < 1e-9)
    assert float(fraction) == 0.0


# First-order details.


def test_the_clipped_surrogate_by_hand():
    # Ratios 1.5, 0.5, 1.5, 0.5 with advantages 1, 1, −1, −1 and clip 0.2:
    # min(1.5, 1.2), min(0.5, 0.8), min(−1.5, −1.2), min(−0.5, −0.8) = 1.2, 0.5, −1.5, −0.8: mean −0.15
    ratio, advantage = jnp.array([1.5, 0.5, 1.5, 0.5]), jnp.array([1.0, 1, -1, -1])
    np.testing.assert_allclose(ppo.clipped_surrogate(ratio, advantage, 0.2), -0.15, rtol=1e-5)


def test_an_update_that_overshoots_is_shortened():
    policy, batch = two_states([0.0, 5.0, 5.0])
    far = jax.tree.map(lambda leaf: leaf.at[..., 0].add(2.0), policy)
    kl, surrogates = ppo.compare(far, batch)
    config = replace(CONFIG, {"ppo.kl": 0.01, "ppo.overshoot": 2.0})
    new, seen, predicted = ppo.shorten(policy, far, kl, surrogates, batch, config)
    assert float(kl) > 0.5
    # Not far below the bound of 2·0.01, in the same direction, with its own KL and surrogates.
    assert 0.01 < float(seen) <= 0.02
    moved = np.asarray(ravel_pytree(new)[0])
    np.testing.assert_allclose(moved / moved.max(), np.asarray(ravel_pytree(far)[0]) / 2, atol=1e-6)
    np.testing.assert_allclose(ppo.compare(new, batch)[0], seen, rtol=1e-5)
    np.testing.assert_allclose(ppo.compare(new, batch)[1], predicted, rtol=1e-4)
    # Within the bound, or with no bound, it stays as it is.
    loose = replace(config, {"ppo.kl": 1.0})
    for same in (loose, replace(config, {"ppo.overshoot": 0.0})):
        kept, seen, _ = ppo.shorten(policy, far, kl, surrogates, batch, same)
        np.testing.assert_array_equal(ravel_pytree(kept)[0], ravel_pytree(far)[0])
        assert float(seen) == float(kl)


def test_the_critic_loss_is_the_mean_square_plus_decay():
    _, critics = networks(1)
    critics = jax.tree.map(lambda leaf: jnp.full_like(leaf, 2.0), critics)
    # Two linear critics of one weight and one bias: values 2·1 + 2 = 4 for an observation of 1.
    # Errors (4, 4 − 2) and (4 − 4, 4 − 1): means (16 + 0)/2 + (4 + 9)/2 = 14.5; Σθ² = 4·4 = 16.
    targets, ones = jnp.array([[0.0, 2.0], [4.0, 1.0]]), jnp.ones((2, 1))
    absolute = ppo.critic_unit(replace(Config(), {"critic.error_unit": "absolute"}), targets)
    np.testing.assert_allclose(ppo.critic_loss(critics, ones, targets, absolute, 0.01), 14.66, rtol=1e-6)
    # In units of the targets' variances, 4 and 1/4: 8/4 + 6.5·4 = 28.
    variance = ppo.critic_unit(Config(), targets)
    np.testing.assert_allclose(ppo.critic_loss(critics, ones, targets, variance, 0.01), 28.16, rtol=1e-6)


def test_gradients_are_scaled_down_to_their_bound():
    gradient = jax.tree.map(lambda leaf: jnp.full_like(leaf, 3.0), networks(0)[0])
    # Four weights and four biases of 3: norm 3·√8 = 8.485281.
    for limit, expected in ((100.0, 3.0), (4.2426407, 1.5)):
        for leaf in jax.tree.leaves(ppo.clip_norm(gradient, limit)):
            np.testing.assert_allclose(leaf, expected, rtol=1e-5)


def test_every_sample_is_used_once_a_pass_and_the_rest_is_left_out():
    order = np.asarray(ppo.shuffle(jax.random.PRNGKey(0), 11, 3))
    assert order.shape == (3, 3)
    assert len(set(order.ravel())) == 9
    assert set(order.ravel()) <= set(range(11))
