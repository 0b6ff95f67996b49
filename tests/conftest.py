"""What all tests share: Hypothesis profiles, and signals as in a terminal.

`make test` must not fail by chance, and `make fuzz` must find what it missed.
"""

import signal

from hypothesis import HealthCheck, settings

# The same examples every time, whatever the machine is doing.
settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # measures time, so it depends on the machine
)
# Other examples every time; a failure prints how to reproduce it and is tried first in the next run.
settings.register_profile("explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

# A job in the background of a script starts with SIGINT ignored, and so would every process of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
