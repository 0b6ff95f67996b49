"""Errors that are not our bugs. The command line turns each into one sentence and an exit code.

Any other exception is a bug in evenly.
"""


class InputError(ValueError):
    """Input that cannot be used. The message says what was given and what is allowed. Exit code 2."""


class NotRecordedError(InputError, AttributeError):
    """Data that a result can hold but that was not recorded; `hasattr` returns False."""


class UnsolvedError(InputError, ArithmeticError):
    """Valid input that a solver could not finish: how far it got, and what to change. Exit code 2."""


class WorkerKilledError(RuntimeError):
    """A process that did part of the work was killed from outside. Exit code 3."""


class PointFailedError(RuntimeError):
    """A point of a sweep that failed, where the first failure was to stop it. Exit code 3."""
