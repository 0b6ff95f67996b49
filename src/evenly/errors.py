"""The one exception for input that cannot be used; the command line turns it into exit code 2.

Anything else that is raised is our bug.
"""


class InputError(ValueError):
    """What was given and what is allowed, in one sentence."""
