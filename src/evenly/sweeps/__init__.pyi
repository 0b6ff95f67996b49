"""What type checkers see of `evenly.sweeps`; a test compares it with the names that load at run time."""

from evenly.sweeps.progress import Status as Status
from evenly.sweeps.result import SweepResult as SweepResult
from evenly.sweeps.run import sweep as sweep
from evenly.sweeps.values import VALUES as VALUES

__all__: list[str]
