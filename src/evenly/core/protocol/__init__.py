"""The same rules over a network that delays, loses, repeats and reorders messages, and with peers that restart.

`PoolPeer` runs next to the servers, `DispatcherPeer` where tasks are dispatched. They wrap `evenly.core`'s pool
and dispatcher, which hold the rules, and add what a network asks for: sequence numbers, incarnations, tickets for
picks that are on the way, and heartbeats that repair what was lost. Time is an argument, messages are returned.

It must not contain a clock, a random number generator, an await, a socket or a rule of the policy.
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
