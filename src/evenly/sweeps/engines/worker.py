"""A process of the local engine: it receives the plan and then jobs, and sends their outcomes."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import threading
from multiprocessing.connection import Connection

from evenly.sweeps.engines import Job, Outcome
from evenly.sweeps.point import Plan, run_batch


def main(handle: int) -> None:
    """Serve jobs that come through this file handle, until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    pipe = Connection(handle)
    plan: Plan = pickle.loads(pipe.recv_bytes())
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, jobs), daemon=True).start()
    while True:
        job = jobs.get()
        rows, left = run_batch(plan, job.indices, job.seconds)
        pipe.send(Outcome(job.number, rows, left))


def _receive(pipe: Connection, jobs: queue.SimpleQueue[Job]) -> None:
    """Take in jobs while others run. When the other end is gone, however it ended, this process ends at once."""
    while True:
        try:
            jobs.put(pipe.recv())
        except (EOFError, OSError):
            os._exit(0)
