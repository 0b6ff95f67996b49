"""One schedule from one seed, and the explanation of one that failed."""

from collections import Counter
from dataclasses import dataclass

from evenly.errors import InputError
from evenly.inputs import shown, whole_number
from tests.faults.network.liveness import check_liveness
from tests.faults.network.setup import Setup, draw_setup
from tests.faults.network.system import Peers, System
from tests.faults.network.world import World

MODES = ("safety", "liveness")
MAX_SEED = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What happened in a schedule. `failure` is None if everything held.

    `faults` counts the faults by kind, and some of what they led to. `trace` is empty unless it was asked for.
    """

    seed: int
    mode: str
    setup: Setup
    events: int
    faults: Counter[str]
    failure: str | None
    trace: tuple[str, ...]

    @property
    def replay(self) -> str:
        """The command that repeats the schedule and prints every event."""
        return f"python -m tests.faults --seed {self.seed} --mode {self.mode}"


def run_schedule(seed: int, mode: str = "safety", *, peers: Peers | None = None, tracing: bool = False) -> Outcome:
    """Run the schedule of this seed and check what must hold.

    Mode safety checks after every event. Mode liveness does too, then ends the faults and checks that the system
    recovers. With `tracing`, the outcome tells every event.
    """
    seed = whole_number("seed", seed, 0, MAX_SEED)
    if mode not in MODES:
        raise InputError(f"mode must be safety or liveness, not {shown(mode)}.")
    world = World(seed, tracing=tracing)
    setup = draw_setup(world.random, liveness=mode == "liveness")
    failure = None
    try:
        system = System(world, setup, peers or Peers())
        system.run()
        if mode == "liveness":
            check_liveness(system)
    except Exception as error:  # whatever a broken state machine raises is a failure too
        failure = f"at {world.now:.4f}, event {world.events}: {type(error).__name__}: {error}"
    return Outcome(
        seed=seed,
        mode=mode,
        setup=setup,
        events=world.events,
        faults=world.faults,
        failure=failure,
        trace=tuple(world.trace or ()),
    )


def explain(outcome: Outcome, *, peers: Peers | None = None, lines: int = 40) -> str:
    """Tell how a schedule failed: the end of its trace, and the command that repeats it."""
    traced = run_schedule(outcome.seed, outcome.mode, peers=peers, tracing=True)
    return "\n".join(
        [str(outcome.setup), *traced.trace[-lines:], f"{outcome.failure}", f"Replay: {outcome.replay}"]
    )
