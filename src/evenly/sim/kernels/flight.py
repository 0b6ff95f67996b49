"""Messages and tasks on the way, by the time at which they arrive, and the delays they take.

If all take the same time, they arrive in the order in which they were sent, and a queue will do. Else they are in
a heap, and those that arrive at the same time do so in the order in which they were sent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import inlined, kernel
from evenly.sim.kernels.ledger import Record
from evenly.sim.kernels.rng import BUFFER, Bits, Floats, fill_exponential, generator

IntArray = NDArray[np.int64]

FIELDS = 5  # kind, pool and three numbers that depend on the kind

# The kinds of what is on the way, and the numbers that each brings.
TASK = 0  # its number, the threshold that it carries, the number of the pick
REPORT = 1  # tasks, arrivals, sequence number
DEPARTURE = 2
COUNT = 3  # tasks, sequence number
POLL = 4  # which poll, which of its pools
ANSWER = 5  # which poll, which of its pools, tasks


class Delays(NamedTuple):
    """A generator of standard exponentials, its buffer, and how much of it is used."""

    state: Bits
    spare: Bits
    buffer: Floats
    scratch: Bits
    rejected: IntArray
    position: IntArray  # a single number


class Flight(NamedTuple):
    """The queue or heap: `due` and `serial` order it, and `slot` says which row of `message` arrives.

    Its size is a power of two.
    """

    due: Floats
    serial: IntArray
    slot: IntArray
    message: IntArray  # one row per message on the way
    free: IntArray  # the rows that are not in use, as a stack
    travel: Delays  # of tasks
    signal: Delays  # of messages


def new_flight(seed: np.random.SeedSequence, wanted: int) -> Flight:
    """Return an empty flight with room for at least this many.

    Delays depend on the seed alone, and those of tasks have a generator of their own: all policies share them.
    """
    room = 1 << wanted.bit_length()
    key = (*seed.spawn_key, 1)
    words = np.asarray(np.random.SeedSequence(seed.entropy, spawn_key=key).generate_state(4, np.uint64), np.uint64)
    return Flight(
        due=np.zeros(room),
        serial=np.zeros(room, np.int64),
        slot=np.zeros(room, np.int64),
        message=np.zeros((room, FIELDS), np.int64),
        free=np.arange(room, dtype=np.int64)[::-1].copy(),
        travel=_new_delays(words[:2]),
        signal=_new_delays(words[2:]),
    )


def grown_flight(flight: Flight, used: int, head: int) -> Flight:
    """Return the same flight with twice the room, and its head at 0."""
    room = flight.due.size
    free = np.concatenate([np.arange(room, 2 * room)[::-1], flight.free[: room - used], np.zeros(used, np.int64)])
    return flight._replace(
        due=np.concatenate([np.roll(flight.due, -head), np.zeros(room)]),
        serial=np.concatenate([np.roll(flight.serial, -head), np.zeros(room, np.int64)]),
        slot=np.concatenate([np.roll(flight.slot, -head), np.zeros(room, np.int64)]),
        message=np.concatenate([flight.message, np.zeros((room, FIELDS), np.int64)]),
        free=free,
    )


def _new_delays(words: Bits) -> Delays:
    delays = Delays(
        state=generator(words[0]),
        spare=generator(words[1], lanes=1),
        buffer=np.ones(BUFFER),
        scratch=np.zeros(BUFFER, np.uint64),
        rejected=np.zeros(BUFFER + 1, np.int64),
        position=np.zeros(1, np.int64),
    )
    refill_delays(delays)
    return delays


@kernel
def refill_delays(delays: Delays) -> None:
    """Draw the next delays."""
    fill_exponential(delays.state, delays.scratch, delays.rejected, delays.spare, delays.buffer)


@inlined
def _push(net: Record, flight: Flight, time: float, slot: int) -> None:
    """Put what arrives at this time into the queue, or into the heap."""
    due, serials, slots = flight.due, flight.serial, flight.slot
    place = net.flying
    net.flying = place + 1
    if net.exponential == 0:
        place = (net.head + place) & (due.size - 1)
        due[place] = time
        slots[place] = slot
    else:
        serial = net.serial
        net.serial = serial + 1
        while place > 0:
            parent = (place - 1) >> 1
            if due[parent] <= time:  # what was sent earlier goes first
                break
            due[place] = due[parent]
            serials[place] = serials[parent]
            slots[place] = slots[parent]
            place = parent
        due[place] = time
        serials[place] = serial
        slots[place] = slot


@inlined
def take(net: Record, flight: Flight) -> int:
    """Take out what arrives next, free its row and return it."""
    due, serials, slots = flight.due, flight.serial, flight.slot
    first = slots[net.head]
    last = net.flying - 1
    net.flying = last
    flight.free[flight.free.size - last - 1] = first
    if net.exponential == 0:
        net.head = (net.head + 1) & (due.size - 1)
    else:
        time, serial, slot = due[last], serials[last], slots[last]
        place = 0
        child = 1
        while child < last:
            right = child + 1
            if right < last and (
                due[right] < due[child] or (due[right] == due[child] and serials[right] < serials[child])
            ):
                child = right
            if time < due[child] or (time == due[child] and serial < serials[child]):
                break
            due[place] = due[child]
            serials[place] = serials[child]
            slots[place] = slots[child]
            place = child
            child = 2 * place + 1
        due[place] = time
        serials[place] = serial
        slots[place] = slot
    return int(first)


@inlined
def delay(net: Record, delays: Delays) -> float:
    """Return how long the next task or message is on the way."""
    if net.exponential == 0:
        return float(net.delay)
    position = delays.position
    if position[0] == BUFFER:
        refill_delays(delays)
        position[0] = 0
    position[0] += 1
    return float(net.delay * delays.buffer[position[0] - 1])


@inlined
def send(net: Record, flight: Flight, due: float, kind: int, pool: int, a: int, b: int, c: int) -> None:
    """Send something that arrives at the time `due`."""
    slot = flight.free[flight.free.size - net.flying - 1]
    message = flight.message
    message[slot, 0] = kind
    message[slot, 1] = pool
    message[slot, 2] = a
    message[slot, 3] = b
    message[slot, 4] = c
    _push(net, flight, due, slot)
