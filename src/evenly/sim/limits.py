"""What a scenario may ask for: bounds on memory, on time and on what numbers can tell apart."""

from __future__ import annotations

MAX_POOLS = 10**9  # counts, not pools, are stored
MAX_NAMED_POOLS = 10**7  # where every pool is stored
MAX_TASKS = 10**8  # where every task is stored
MAX_SESSIONS = 2 * 10**7  # where every task is stored with the time at which it ends
MAX_SLOTS = 10**7  # where every slot is stored
MAX_FLYING = 10**6  # messages on the way
MAX_SQUARES = 2**62  # pools times tasks squared, which is summed in 64 bits
SHORTEST = 1e-15  # horizon
LONGEST = 1e100  # horizon; beyond it, areas under the curves overflow
SHORTEST_WINDOW = 1e-9  # in horizons
SERVICE_RATES = (1e-100, 1e100)
MAX_EVENTS = 1e15  # by the horizon; a clock with 53 bits cannot tell more apart
MAX_TURNS = 1e12  # periods of a wave by the horizon; beyond it, a sine is mostly rounding
MAX_SAMPLE_SIZE = 512
INTERVALS = (1e-6, 1e6)  # between two reports, in mean task times
DEFAULT_INTERVAL = 0.1
MAX_LEVELS = 10**6
DEFAULT_MARGIN = 2  # tasks beyond the threshold with which a pool takes its clients back; that of `evenly gateway`
