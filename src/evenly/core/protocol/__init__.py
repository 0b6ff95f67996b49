"""The policy over a network that delays, loses, repeats and reorders messages, and with peers that restart.

`PoolPeer` runs next to the servers, `DispatcherPeer` where tasks are dispatched. Pool and learning rule are those
of `evenly.core`. A network asks for more: sequence numbers, incarnations, tickets for picks that are on the way,
and heartbeats that repair what was lost. Two rules differ. A pick takes a pool with the smallest estimate: one of
those with a green token, else of those with a yellow one, else of all. And no new threshold is broadcast: tasks
carry it to the pools. Time is an argument, messages are returned.

It must not contain a clock, a random number generator, an await or a socket.
"""

from evenly.core.protocol.answers import KeyReusedError
from evenly.core.protocol.dispatcher_peer import DispatcherPeer, TooManyPicksError
from evenly.core.protocol.messages import Kind, PeerMessageCount, Pick, ToDispatcher, ToPool
from evenly.core.protocol.pool_peer import PoolPeer
from evenly.core.protocol.records import KnownPool
from evenly.core.protocol.tickets import Tickets

__all__ = [
    "DispatcherPeer",
    "KeyReusedError",
    "Kind",
    "KnownPool",
    "PeerMessageCount",
    "Pick",
    "PoolPeer",
    "Tickets",
    "ToDispatcher",
    "ToPool",
    "TooManyPicksError",
]
