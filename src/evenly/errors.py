"""What can go wrong without being our bug; the command line turns it into a sentence and an exit code.

Anything else that is raised is our bug.
"""


class InputError(ValueError):
    """Input that cannot be used: what was given and what is allowed, in one sentence. Exit code 2."""


class NotRecordedError(InputError, AttributeError):
    """Something that a result could hold but was not asked to; `hasattr` answers False."""


class WorkerKilledError(RuntimeError):
    """A process that did part of the work was killed from outside. Exit code 3."""
