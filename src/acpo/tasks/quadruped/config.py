"""Every number of the Go1 task that the paper leaves open, one field each.

Leg order FR, FL, RR, RL; joint order hip, thigh, calf. SI units, radians. The numbers of the robot
itself (masses, geometry, limits) live in `go1.xml`. "Spec n" below is section n of the task's
specification; `docs/quadruped.md` tells the reasons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from acpo.errors import UserError, nearest

Preset = Literal["default", "robust", "legged_gym", "playground"]


@dataclass(frozen=True)
class Go1Config:
    """The task. Defaults reproduce the paper where it speaks and spec 1 to 7 where it does not."""

    # Simulation and control, spec 2.
    physics_step: float = 0.005
    """Length of one physics step, s."""
    decimation: int = 4
    """Physics steps in one control step, with the targets held."""
    solver_iterations: int = 4
    """Newton iterations a physics step; 4 gives the same bits as 100, 1 does not."""
    line_search_iterations: int = 8
    """Line-search iterations inside a Newton iteration."""
    cone: Literal["pyramidal", "elliptic"] = "pyramidal"
    """Shape of the friction cone."""
    impratio: float = 1.0
    """Ratio of frictional to normal constraint impedance."""
    kp: float = 35.0
    """Position gain of every joint, N m/rad. Softer ones make the action-rate cost dearer."""
    kd: float = 1.0
    """Velocity gain of every joint, N m s/rad."""
    friction_loss: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Dry friction of hip, thigh and calf joints, N m; identified on hardware: 0.3, 0.3, 1.0."""
    foot_radius: float = 0.02
    """Radius of the foot's sphere, m; 0.023 in models that follow the visual rubber."""
    foot_friction: float = 1.0
    """Sliding friction of the feet on the floor."""
    action_scale: float = 0.25
    """Radians of joint target a unit of action stands for (paper)."""
    action_clip: float = 10.0
    """Actions are clipped to plus or minus this before scaling."""
    default_pose: tuple[float, ...] = (-0.1, 0.8, -1.5, 0.1, 0.8, -1.5, -0.1, 1.0, -1.5, 0.1, 1.0, -1.5)
    """Joint targets of action 0, rad."""

    # Episodes, spec 7.
    episode_steps: int = 1000
    """Control steps before an episode is cut: 20 s (paper)."""
    random_clocks: bool = True
    """Start environments at random points of the episode clock, so that ends are spread out."""
    tilt_limit: float = math.radians(70.0)
    """Tilt of the trunk that ends an episode, rad; looser than the orientation cost."""
    height_floor: float = 0.12
    """Height of the trunk that ends an episode when undercut, m."""
    speed_limit: float = 1000.0
    """A world with a faster generalised velocity has exploded and is reset as failed, m/s or rad/s."""
    trunk_touch_ends: bool = True
    """Whether the trunk touching the floor ends the episode."""
    reset: Literal["settled", "exact", "legged_gym"] = "settled"
    """Start: the settled stand with noise, the same without noise, or legged_gym's wide noise."""
    reset_joint_noise: float = 0.05
    """Joints start within plus or minus this of the settled stand, rad."""
    reset_lift: float = 0.005
    """The trunk starts this much above its settled height, m."""
    reset_velocity: float = 0.3
    """Each planar velocity component starts within plus or minus this, m/s."""
    reset_drop_height: float = 0.42
    """Trunk height of a `legged_gym` reset, m."""
    reset_pose_factors: tuple[float, float] = (0.5, 1.5)
    """A `legged_gym` reset multiplies every joint of the default pose by a number in this range."""
    reset_root_velocity: float = 0.5
    """A `legged_gym` reset draws all six root velocities within plus or minus this, m/s and rad/s."""

    # Commands, spec 4.
    command_limits: tuple[float, float, float] = (1.0, 0.6, 1.0)
    """Commands are uniform within plus or minus these: forward m/s, left m/s, turn rad/s."""
    command_steps: int = 500
    """Control steps between new commands: 10 s."""
    command_dead_zone: float = 0.2
    """Planar commands with a smaller norm become zero, m/s."""
    standing_probability: float = 0.1
    """Fraction of commands that are zero in all three entries."""

    # Gait, spec 4.
    gait_frequency: float = 2.5
    """Steps of the gait clock a second, Hz: 20 control steps a cycle."""
    gait_offsets: tuple[float, float, float, float] = (0.0, 0.5, 0.5, 0.0)
    """Phase of each foot against the clock: a trot."""
    duty: float = 0.5
    """Fraction of the cycle a foot should stand."""
    contact_smoothing: float = 0.07
    """Standard deviation, in cycles, of the switch between stance and swing."""
    swing_height: float = 0.06
    """How far a foot should rise above its stance height, m."""
    random_phase: bool = True
    """Draw the clock at each reset; False starts it at 0, as tests and evaluation do."""
    stand_still: bool = False
    """Ask all feet to stand at exactly zero command, rather than to march on the spot."""

    # Observation, spec 3.
    gravity_norm: float = 9.81
    """Length of the gravity vector in observation and orientation cost: 9.81 m/s², or 1."""
    joint_velocity_scale: float = 0.05
    """Factor on the observed joint velocities (paper)."""
    linear_velocity_scale: float = 2.0
    """Factor on the observed trunk velocity (paper)."""
    angular_velocity_scale: float = 0.25
    """Factor on the observed turning rate (paper)."""
    gravity_scale: float = 0.3
    """Factor on the observed gravity vector (paper)."""
    command_scale: float = 2.0
    """Factor on all three observed commands (paper)."""
    contact_threshold: float = 1.0
    """Force on a foot above which it counts as touching, N."""
    observation_clip: float = 100.0
    """Observations are clipped to plus or minus this."""
    observation_noise: bool = False
    """Whether the five amounts below are added, uniform, before scaling."""
    noise_joint_position: float = 0.01
    """Noise of a joint angle, plus or minus, rad."""
    noise_joint_velocity: float = 1.5
    """Noise of a joint velocity, plus or minus, rad/s."""
    noise_linear_velocity: float = 0.1
    """Noise of the trunk velocity, plus or minus, m/s."""
    noise_angular_velocity: float = 0.2
    """Noise of the turning rate, plus or minus, rad/s."""
    noise_gravity: float = 0.05
    """Noise of the gravity vector, plus or minus, as a fraction of its length."""

    # Reward, spec 5.
    linear_tracking_weight: float = 1.0
    """Weight of following the planar command (paper)."""
    angular_tracking_weight: float = 0.5
    """Weight of following the turn command (paper)."""
    collision_weight: float = -1.0
    """Weight of each of the 13 links other than feet on the floor (paper)."""
    clearance_weight: float = -1.0
    """Weight of swing feet away from the desired height (paper)."""
    foot_velocity_weight: float = -1.0
    """Weight of stance feet that move (paper)."""
    foot_force_weight: float = -1.0
    """Weight of swing feet that carry load (paper)."""
    tracking_sigma: float = 0.25
    """Width of both tracking terms, m²/s² and rad²/s²."""
    clearance_sigma: float = 1.0 / 30.0
    """Width of the clearance term, m²."""
    foot_velocity_sigma: float = 10.0
    """Width of the foot velocity term, m²/s²."""
    foot_force_sigma: float = 100.0
    """Width of the foot force term, N²."""
    reward_scale: float = 0.02
    """The learner's reward is this times (R + `reward_offset`)."""
    reward_offset: float = 2.0
    """Added to R for the learner, so that falling early never pays; 0 is the paper's literal reward."""

    # Costs, spec 6.
    cost_scale: float = 0.1
    """Factor on each cost: 0.1 makes a sum of 2 over 1000 steps mean 2 % of them; 1 and 0.02 are
    the other readings of the paper."""
    cost_smoothing: float = 0.1
    """Width of the barrier as a fraction of the allowed interval's half-width."""
    aggregate: Literal["mean", "max", "sum"] = "mean"
    """How the components of a vector-valued cost become one number."""
    ang_vel: Literal["components", "norm"] = "components"
    """Bound both roll and pitch rate, or their norm."""
    action_rate_units: Literal["scaled", "raw"] = "scaled"
    """Bound the joint target's rate in rad/s, or the bare action's per second."""
    ang_vel_xy_limit: float = 1.0
    """Bound of roll and pitch rate, rad/s (paper)."""
    lin_vel_z_limit: float = 0.4
    """Bound of the vertical velocity, m/s (paper)."""
    orientation_limit: float | None = None
    """Bound of the gravity vector's horizontal part; None is 7 m/s² (paper), or 0.7 of a unit vector."""
    height_limits: tuple[float, float] = (0.2, 0.5)
    """Bounds of the trunk's height, m (paper)."""
    soft_position_fraction: float = 0.9
    """Bound of a joint as a fraction of its half range around the middle (paper)."""
    soft_velocity_fraction: float = 0.9
    """Bound of a joint's velocity as a fraction of its motor's limit (paper)."""
    velocity_limits: tuple[float, float, float] = (30.1, 30.1, 20.06)
    """Speed limits of the hip, thigh and calf motors, rad/s."""
    soft_torque_fraction: float = 0.7
    """Bound of a joint's torque as a fraction of its motor's limit (paper)."""
    action_rate_limit: float = 10.0
    """Bound of the joint target's rate, rad/s (paper)."""

    # Randomisation, spec 7; all off by default. Worlds keep what they drew at the start of a run.
    friction_range: tuple[float, float] | None = None
    """Sliding friction of the feet, uniform for each environment."""
    trunk_mass_noise: float = 0.0
    """Mass added to the trunk, plus or minus, kg."""
    trunk_com_noise: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Shift of the trunk's centre of mass, plus or minus, m."""
    gain_range: tuple[float, float] | None = None
    """Factors on kp and on kd, drawn apart, for each environment."""
    push_steps: int = 0
    """Control steps between pushes; 0 is never."""
    push_velocity: float = 0.5
    """A push adds to each planar velocity component within plus or minus this, m/s."""
    random_delay: bool = False
    """Whether each episode draws if its actions reach the motors one control step late."""

    @property
    def control_step(self) -> float:
        """Seconds between actions."""
        return self.physics_step * self.decimation

    @property
    def orientation_bound(self) -> float:
        """The bound in the units of `gravity_norm`: both readings mean a tilt near 45 degrees."""
        if self.orientation_limit is not None:
            return self.orientation_limit
        return 0.7 if self.gravity_norm == 1.0 else 7.0

    @property
    def randomises_worlds(self) -> bool:
        """Whether worlds differ in their physical constants."""
        return (
            self.friction_range is not None
            or self.trunk_mass_noise > 0
            or any(self.trunk_com_noise)
            or self.gain_range is not None
        )

    def for_evaluation(self) -> Go1Config:
        """The same task for reported numbers: nominal robot, clean senses, clocks that start at 0."""
        return replace(
            self,
            random_clocks=False,
            random_phase=False,
            observation_noise=False,
            friction_range=None,
            trunk_mass_noise=0.0,
            trunk_com_noise=(0.0, 0.0, 0.0),
            gain_range=None,
            push_steps=0,
            random_delay=False,
        )


PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "robust": {
        "friction_range": (0.5, 1.25),
        "trunk_mass_noise": 1.0,
        "trunk_com_noise": (0.025, 0.025, 0.03),
        "gain_range": (0.9, 1.1),
        "push_steps": 400,
        "random_delay": True,
        "observation_noise": True,
    },
    "legged_gym": {"kp": 20.0, "kd": 0.5, "reset": "legged_gym"},
    "playground": {"kp": 35.0, "kd": 0.5, "friction_loss": (0.3, 0.3, 1.0)},
}
"""Named departures from the defaults (spec 2, 3, 7)."""


def make_config(preset: str = "default", **changes: Any) -> Go1Config:
    """A preset with some fields changed; unknown names are a `UserError`.

    Lists, as a configuration file gives them, become tuples.
    """
    if preset not in PRESETS:
        raise UserError(f"Go1 has no preset '{preset}'; {nearest(preset, PRESETS)}")
    known = {field.name for field in fields(Go1Config)}
    for name in changes:
        if name not in known:
            raise UserError(f"Go1 has no option '{name}'; {nearest(name, known)}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}
    return Go1Config(**(PRESETS[preset] | values))
