"""NaN and infinity end training by name, and leave the last good state."""

import jax
import numpy as np
import pytest
from walkers import COST, HUGE, NONE, OBSERVATION, REWARD, HostWalk, Walk, config

from acpo.errors import NonFiniteError
from acpo.training import Trainer

# Iterations are eight steps of eight environments: step 10 is in the second. Environment 5 breaks.
FAULTS = [
    (OBSERVATION, "The observation became NaN or infinite in environment 5 at iteration 2"),
    (REWARD, "The reward became NaN or infinite in environment 5 at iteration 2"),
    (COST, "The cost became NaN or infinite in environment 5 at iteration 2"),
    # A reward that is finite, but too large for its advantage to be.
    (HUGE, "The gradient became NaN or infinite at iteration 2"),
]
CONFIG = config("ipo", network__normalise=False)
BUDGET = np.array([1.0])


def trainer(host: bool, **fault: int) -> Trainer:
    return Trainer(CONFIG, [HostWalk(**fault)] if host else Walk(**fault), BUDGET)


@pytest.mark.parametrize("host", [False, True], ids=["device", "host"])
@pytest.mark.parametrize(("kind", "message"), FAULTS)
def test_a_fault_is_named_and_the_last_good_state_is_kept(host, kind, message):
    running = trainer(host, kind=kind, which=5, at=10)
    running.iterate()
    good = running.state
    before = [np.array(leaf) for leaf in jax.tree.leaves(good)]
    with pytest.raises(NonFiniteError, match=message):
        running.iterate()
    assert running.state is good
    assert running.iteration == 1
    for leaf, old in zip(jax.tree.leaves(running.state), before, strict=True):
        np.testing.assert_array_equal(leaf, old)
        assert np.all(np.isfinite(np.asarray(leaf, np.float64)) | ~np.isnan(np.asarray(leaf, np.float64)))


@pytest.mark.parametrize("host", [False, True], ids=["device", "host"])
def test_without_a_fault_nothing_is_raised(host):
    running = trainer(host, kind=NONE, which=5, at=10)
    for _ in range(3):
        metrics = running.iterate()
    assert running.iteration == 3
    assert not [name for name in metrics if name.startswith("non_finite")]
