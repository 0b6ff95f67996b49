"""How much one Envoy may take on: derived from its limit of open files and from the memory it may use.

Beyond its limit of open files Envoy crashes, and beyond its memory it is killed. Either ends every session. So
this module divides both among everything that needs them, and the config makes Envoy refuse the surplus.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenly.errors import InputError
from evenly.inputs import whole_number

MAX_STREAMS = 100  # concurrent requests of one HTTP/2 connection
MAX_CONNECTIONS = 1_000_000  # what Envoy counts up to when nothing has to be limited
DEFAULT_FILES = 65_536  # open files of a machine that we do not know
DEFAULT_MEMORY_MIB = 4096

_BASE_FILES = 60  # Envoy itself
_THREAD_FILES = 10  # each worker thread: its events, its listening socket, its connections to the picker
_FILES_PER_THREAD = 600  # threads lend each other no connections, so few files are best shared by few threads
_SPARE_SHARE = 20  # one file in 20 stays free, for pools that are added later
_POOLS_SHARE = 4  # at most a quarter of the files is set aside for pools that have no sessions
_BURST = 64  # requests that can wait for a connection at once, plus one in 20 of the files
_BURST_SHARE = 20
_MIN_FILES = 750  # leaves room for 100 sessions
_MAX_FILES = 10**9
_MIN_MEMORY_MIB, _MAX_MEMORY_MIB = 128, 2**30  # Envoy itself needs about 60 MiB
_HEAP_SHARE = 2  # half of the memory is for Envoy's heap; the picker and the kernel need some, too
_RETRY_SHARE = 8  # an eighth of the heap is for request bodies that are kept for a retry
_MAX_RETRY_BYTES = 2**29
_MAX_RETRY_BODY = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What Envoy accepts at most. The numbers of connections fit into `files` together.

    `sessions` are requests and sessions open at pools, one connection each: this number with a safe method, and
    the same number with others. `connecting` are requests that wait for their connection. Beyond either, clients
    get 503 at once. `pool_connections` has room for both and for idle connections, since requests that wait for
    this limit get no answer. `new_connections` come on top: those that carry one request with an unsafe method.
    `retry_body` is the number of bytes of a request body that is kept for a retry. `heap` is in bytes, too: close
    to it, Envoy takes no more requests. `threads` are Envoy's workers.
    """

    files: int
    threads: int
    clients: int
    sessions: int
    connecting: int
    pool_connections: int
    new_connections: int
    heap: int
    retry_body: int


def derive_limits(
    files: int = DEFAULT_FILES, memory: int = DEFAULT_MEMORY_MIB * 2**20, pools: int = 0, processors: int = 1
) -> Limits:
    """Divide open files and bytes of memory, for an Envoy that may use this number of processors.

    In the worst case each client has sent a GET and then a POST. The connection of the GET is idle, and the POST
    has opened another one, so a session takes three files. Each pool is in two clusters. In each it needs a file
    for its health checks. And beyond its limit of connections, every thread may still open one to each pool that
    it has none to.
    """
    needed = _MIN_FILES + 2 * pools
    if files < needed:
        raise InputError(
            f"The limit of open files must be at least {needed}, not {files}: raise it with ulimit -n."
        )
    threads = min(processors, files // _FILES_PER_THREAD)
    for_pools = max(2 * pools, min(2 * pools * (1 + threads), files // _POOLS_SHARE))
    rest = files - _BASE_FILES - _THREAD_FILES * threads - for_pools - files // _SPARE_SHARE
    connecting = idle = _BURST + rest // _BURST_SHARE
    sessions = min((rest - 2 * connecting - idle) // 3, MAX_CONNECTIONS)
    heap = memory // _HEAP_SHARE
    return Limits(
        files=files,
        threads=threads,
        clients=sessions,
        sessions=sessions,
        connecting=connecting,
        pool_connections=sessions + connecting + idle,
        new_connections=sessions + connecting,
        heap=heap,
        retry_body=min(min(heap // _RETRY_SHARE, _MAX_RETRY_BYTES) // (2 * sessions), _MAX_RETRY_BODY),
    )


def read_limits(*, open_files: object, memory_mib: object, pools: int) -> Limits:
    """Return the limits from options, None for the default."""
    files = DEFAULT_FILES if open_files is None else open_files
    mib = DEFAULT_MEMORY_MIB if memory_mib is None else memory_mib
    return derive_limits(
        files=whole_number("open-files", files, _MIN_FILES, _MAX_FILES),
        memory=whole_number("memory-mib", mib, _MIN_MEMORY_MIB, _MAX_MEMORY_MIB) * 2**20,
        pools=pools,
    )
