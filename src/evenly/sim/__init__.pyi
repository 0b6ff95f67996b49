"""What type checkers see of `evenly.sim`; a test compares it with the names that load at run time."""

from evenly.sim import coupling as coupling
from evenly.sim import reference as reference
from evenly.sim import scenario as scenario
from evenly.sim import simulation as simulation
from evenly.sim.comparison import Comparison as Comparison
from evenly.sim.result import Result as Result
from evenly.sim.run import compare as compare
from evenly.sim.run import simulate as simulate
from evenly.sim.run import with_policies as with_policies
from evenly.sim.scenario import Scenario as Scenario
from evenly.sim.trajectory import Trajectory as Trajectory
from evenly.workload.demand import Phase as Phase

__all__: list[str]
