"""Every setting, once. One sentence a field; the paper's value in brackets where it differs.

`--help` prints these sentences. A budget lives in `Config.budget` and nowhere else.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from acpo.errors import UserError, nearest


@dataclass(frozen=True)
class RolloutConfig:
    """How experience is collected."""

    envs: int = 100
    """Environments stepped side by side."""
    batch: int = 20000
    """Steps per iteration, all environments together; a multiple of `envs`."""
    returns: Literal["episodes", "steps"] = "episodes"
    """How the returns that limits are compared with are measured: `episodes` averages finished
    episodes, though earlier policies took most of their steps where an iteration is shorter than an
    episode; `steps` is the iteration's mean per step times the mean episode length: no lag, but it
    needs clocks that do not run in step [episodes]."""
    episode_window: int = 0
    """Average the last so many finished episodes; 0 means those that finished in the iteration
    (OmniSafe: 50)."""


@dataclass(frozen=True)
class NetworkConfig:
    """Policy and critics."""

    hidden: tuple[int, ...] = (64, 64)
    """Units of each hidden layer; empty makes policy and critics linear."""
    activation: Literal["tanh", "relu", "elu"] = "tanh"
    """Between layers."""
    log_std: float = 0.0
    """Initial log standard deviation of each continuous action."""
    normalise: bool = True
    """Standardise observations by running mean and std, clipped to ±5."""


@dataclass(frozen=True)
class AdvantageConfig:
    """Generalised advantage estimation."""

    discount: float = 0.99
    """γ of the reward, per step."""
    trace: float = 0.95
    """λ of the reward."""
    cost_discount: float = 0.99
    """γ of every cost, per step."""
    cost_trace: float = 0.95
    """λ of every cost."""
    surrogate_scale: Literal["episode", "discount", "one"] = "episode"
    """What turns a mean advantage into a change of episode return: the mean episode length,
    1/(1 − γ) (the paper's Section 3), or 1 (its Algorithm 2)."""


@dataclass(frozen=True)
class CriticConfig:
    """Value networks of reward and costs."""

    learning_rate: float = 3e-4
    """Adam step of the critics [1e-3 for cpo and crpo]."""
    passes: int = 10
    """Passes over the batch where critics are fitted apart from the policy (trust-region solvers)."""
    minibatch: int = 128
    """Samples per critic step where critics are fitted apart from the policy."""
    weight_decay: float = 0.001
    """Coefficient of the squared weights in the critic loss."""
    error_unit: Literal["variance", "absolute"] = "variance"
    """What the squared errors in that loss are measured in: the variance of the signal's targets, so
    that weight decay means the same for a signal of any size, or as they are, where it keeps the
    critic of a small cost at zero [absolute]."""


@dataclass(frozen=True)
class PPOConfig:
    """The first-order engine of interior point and Lagrangian."""

    learning_rate: float = 3e-4
    """Adam step of the policy at the start of training."""
    final_learning_rate: float = 0.0
    """Fraction of the learning rate left at the end; it decays linearly."""
    passes: int = 40
    """Most passes over the batch in one iteration."""
    minibatch: int = 64
    """Samples per gradient step; what is left of a pass after whole minibatches is skipped."""
    clip: float = 0.2
    """Clip ratio of the importance weight."""
    kl: float = 0.02
    """Passes stop once the exact KL(old ‖ new) over the batch exceeds this."""
    overshoot: float = 2.0
    """An update that came to more than so many times `kl` is shortened to that; 0 for never [0]."""
    max_grad_norm: float = 40.0
    """Gradients of each network are scaled down to this norm."""
    entropy: float = 0.0
    """Weight of an entropy bonus beside the standardised reward; it falls linearly to zero
    over the first two thirds of training, so that the policy learned at the end is not biased."""


@dataclass(frozen=True)
class TrustRegionConfig:
    """The second-order engine of CPO and CRPO."""

    kl: float = 0.01
    """δ: the largest KL of one step."""
    cg_iterations: int = 15
    """Conjugate-gradient iterations."""
    damping: float = 0.1
    """Added to the Fisher matrix's diagonal [0.01]."""
    backtrack: float = 0.8
    """Factor between line-search steps."""
    backtracks: int = 15
    """Line-search steps before the policy stays as it is."""
    entropy: float = 0.0
    """Weight of an entropy bonus beside the standardised reward; it falls as `ppo.entropy` does."""


@dataclass(frozen=True)
class InteriorPointConfig:
    """Limits as log-barriers φ(s) = κ·log(s) of their slack s."""

    reading: Literal["surrogate", "measured", "minibatch"] = "surrogate"
    """Where the slack is read: `surrogate` moves with the policy (whole batch, once a pass);
    `measured` is fixed for the update, as OmniSafe does; `minibatch` is the literal barrier on
    each minibatch's surrogate (the paper's Algorithm 2)."""
    calibrate: bool = True
    """Believe predicted changes, in `surrogate`, only as far as earlier ones came true: a batch
    flatters the policy that was fitted to it [no]."""
    gain: float = 0.3
    """How far a new measurement of the returns corrects what earlier ones and predictions made
    expect; 1 takes it as it is. One iteration's episodes are few, and a barrier that follows their
    noise is a switch [1]."""
    kappa: float = 0.1
    """κ = 1/t: softness of the barrier at the start of training [0.01, absolute]."""
    final_kappa: float = 1.0
    """Fraction of κ left at the end; it decays geometrically (t grows, as interior-point methods do)."""
    kappa_unit: Literal["budget", "absolute"] = "budget"
    """Whether κ is a fraction of the limit it guards or in units of the signal itself."""
    reward_kappa: float = 1.0
    """κ of a limit on the reward, in deviations of one measured return (unless κ is absolute): a
    policy enters min-cost right at its limit, and a barrier softer than that would push the
    reward up instead of the cost down."""
    objective_unit: Literal["deviation", "signal"] = "deviation"
    """What the objective beside the barriers is measured in: the deviation of its advantages, so that
    multipliers mean the same in every stage, or its signals' own units, in which the reward is
    standardised and costs are not: where those are small, a min-cost stage then sees little but the
    limit on the reward [signal]."""
    penalty_max: float = 25.0
    """Largest multiplier of a limit; also the one used when the limit is broken [1 for Go1]."""


@dataclass(frozen=True)
class LagrangianConfig:
    """Limits as learned multipliers."""

    initial: float = 0.001
    """Multiplier at the start."""
    learning_rate: float = 0.035
    """Adam step of the multipliers, one an iteration."""
    maximum: float = 1000.0
    """Largest multiplier."""
    proportional: float = 0.0
    """Added to the multiplier that is felt, per relative violation of the limit (the P of a PID
    Lagrangian): it damps the swings of a purely integrating multiplier [0]."""
    on_stage_change: Literal["rescale", "hold", "reset"] = "rescale"
    """What happens to multipliers when the limited signal changes: `rescale` gives the new limit
    the reciprocal of the old multiplier (the two problems then have the same stationary points),
    `hold` keeps each signal's last one, `reset` starts again."""


@dataclass(frozen=True)
class SwitchingConfig:
    """CRPO: one signal at a time."""

    tolerance: float = 2.0
    """How far over its limit a signal may be before it is the one that is improved."""
    tolerance_unit: Literal["absolute", "budget"] = "absolute"
    """Whether the tolerance is in units of the signal or a fraction of its limit."""


@dataclass(frozen=True)
class CurriculumConfig:
    """Budgets that follow a set path to the desired ones."""

    shape: Literal["linear", "cosine", "knots"] = "linear"
    """Path between the initial and the desired budget."""
    initial: float = 2.0
    """Initial budget as a multiple of the desired one; the first measured cost if that is larger."""
    end: float = 0.7
    """Fraction of training after which the desired budget holds."""
    knots: tuple[tuple[float, float], ...] = ()
    """For `knots`: pairs (fraction of training, multiple of the desired budget), linear between."""


@dataclass(frozen=True)
class AdversarialConfig:
    """ACPO's schedule (Algorithm 3), every point the paper leaves open a field."""

    explore: int = 10
    """n_e: first iterations, all in max-reward under the initial budget."""
    max_reward: int = 10
    """n_1: iterations of a max-reward stage [10; 20 for Go1]."""
    min_cost: int = 5
    """n_2: most iterations of a min-cost stage [5; 10 for Go1]."""
    projection: int = 10
    """n_3: most iterations of a projection stage (the paper gives no rule)."""
    window: int = 10
    """Iterations in the queues of measured returns."""
    initial: float = 2.0
    """d⁰ as a multiple of the desired budget."""
    initial_measured: bool = True
    """Raise d⁰ to the first measured cost where that is larger."""
    patience: float = 0.25
    """Fraction of training until which budgets are no tighter than on a line from d⁰ to the desired
    ones, and min-cost stages go no further: what a policy learns while it is cheap to learn it keeps;
    0 for none [0]."""
    deadline: float = 0.5
    """Fraction of training by which d has come down to the desired budget, on a line from d⁰ if the
    stages are slower than that and no convergence has steered it; 0 for never: a run that is too
    short for its stages then ends over its budgets [0]."""
    convergence: Literal["cycle", "queue"] = "cycle"
    """What converges: (g, mean cost after min-cost) from one cycle to the next (Algorithm 1), or
    the raw queues (Algorithm 3)."""
    tolerance: float = 0.02
    """Relative change below which a value counts as converged."""
    noise: float = 1.0
    """With `cycle`, changes within so many of their standard errors count as none, too: where costs
    are noisy, no two cycles agree to the tolerance. Budgets are steered by that share of a
    mean cost's deviation which is no noise, and less than so many errors begin no projection [0]."""
    finish: float = 0.005
    """δ_d: largest |mean cost − desired| / desired at which a convergence ends the search."""
    margin: float = 0.005
    """Aim this fraction under the desired budget: measured costs are noisy, a budget is a promise [0]."""
    stop_when_converged: bool = False
    """Stop training when the search ends instead of going on to the step limit."""
    gain: float = 1.0
    """k_p: step of the budgets at a convergence above the desired cost."""
    gain_under: float = 1.0
    """k: step of the budgets at a convergence below the desired cost."""
    lowered: float = 0.9
    """How far convergence events lower d, as a multiple of the desired budget: a policy that cannot
    follow at once must not find a far tighter budget when it can [0]."""
    raised: float = 1.1
    """How far convergence events raise d, as a multiple of the desired budget: a cost that stays
    under it for want of use must not leave a budget too loose to bind when it is needed [∞]."""
    settle: float = 0.3
    """Last fraction of training, in which (if `skip_satisfied`) there are no min-cost stages and, with
    `cycle`, every max-reward stage ends in an event: the trade-off is found by then, and what is left
    is to bring the mean cost to the desired budget [0]."""
    guard_satisfied: bool = True
    """In min-cost, limit satisfied costs to their desired budget [no]."""
    skip_satisfied: bool = True
    """Skip min-cost when no cost is over its desired budget, and end it when none is any more [no
    for one cost]."""
    monotone: bool = True
    """After min-cost, d ← min(d, max(mean cost, desired budget or where events have steered it))
    [d ← mean cost]."""
    reward_slack: float = 1.0
    """The reward limit of min-cost is g minus so many deviations of one measured return [0]."""


@dataclass(frozen=True)
class Config:
    """One run."""

    task: str = "PointGoal1"
    """A registered task, or package.module:factory of a Gymnasium environment with costs."""
    algo: str = "acpo"
    """See `acpo list`."""
    budget: tuple[float, ...] = ()
    """Desired cost per episode, undiscounted: one number per cost, or one for all."""
    steps: int = 10_000_000
    """Environment steps per seed."""
    seed: int = 0
    """First seed."""
    seeds: int = 1
    """Independent runs, seeded seed, seed + 1, … and trained side by side."""
    backend: Literal["auto", "native", "mjx"] = "auto"
    """Simulator: mujoco on threads (native) or in the graph (mjx)."""
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    advantage: AdvantageConfig = field(default_factory=AdvantageConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    trust_region: TrustRegionConfig = field(default_factory=TrustRegionConfig)
    interior_point: InteriorPointConfig = field(default_factory=InteriorPointConfig)
    lagrangian: LagrangianConfig = field(default_factory=LagrangianConfig)
    switching: SwitchingConfig = field(default_factory=SwitchingConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    adversarial: AdversarialConfig = field(default_factory=AdversarialConfig)

    @property
    def iterations(self) -> int:
        """Policy updates in the run; a last batch that the step limit cuts is still collected whole."""
        return -(-self.steps // self.rollout.batch)


def replace(config: Any, changes: dict[str, Any]) -> Any:
    """`config` with fields given by dotted name, such as {"ppo.clip": 0.1}.

    An unknown name is answered with the nearest known one.
    """
    for name, value in changes.items():
        head, _, rest = name.partition(".")
        known = {f.name for f in dataclasses.fields(config)}
        if head not in known:
            raise UserError(f"There is no field '{name}'; {nearest(head, known)}")
        current = getattr(config, head)
        if rest:
            if not dataclasses.is_dataclass(current):
                raise UserError(f"'{head}' has no field '{rest}': it is a single value.")
            new = replace(current, {rest: value})
        elif dataclasses.is_dataclass(current) and not isinstance(value, type(current)):
            raise UserError(
                f"'{head}' is a group of fields; give one of them, such as '{head}."
                f"{dataclasses.fields(current)[0].name}'."
            )
        else:
            new = value
        config = dataclasses.replace(config, **{head: new})
    return config
