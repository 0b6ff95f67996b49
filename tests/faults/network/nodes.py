"""The machines: agents next to the pools, and front-ends that clients ask."""

from collections.abc import Callable, Hashable

from evenly.core import PoolId
from evenly.core.protocol import Pick, PoolPeer, ToDispatcher, ToPool
from tests.faults.network.invariants import PoolBook
from tests.faults.network.network import Network
from tests.faults.network.setup import HEARTBEAT, Setup
from tests.faults.network.state import DispatcherState
from tests.faults.network.text import message_text
from tests.faults.network.world import World

STORE = "store"


class PoolNode:
    """A pool's agent. A crash loses all sessions; a restart has a higher incarnation."""

    def __init__(
        self,
        name: str,
        world: World,
        setup: Setup,
        send: Callable[[str, ToDispatcher], None],
        make: type[PoolPeer],
    ) -> None:
        self.name = name
        self.up = False
        self.incarnation = 0
        self._world = world
        self._setup = setup
        self._send = send
        self._make = make
        self._touched = False

    @property
    def draining(self) -> bool:
        """True if it wants no more tasks."""
        return self.up and self.book.draining

    def start(self) -> None:
        """Start with nothing, and send the first heartbeat."""
        self.incarnation += 1
        self.up = True
        self.peer = self._make(self.name, incarnation=self.incarnation, capacity=self._setup.capacity)
        self.book = PoolBook()
        self._beat(self.incarnation)

    def crash(self) -> None:
        """Lose everything, until the next start."""
        self.up = False

    def drain(self) -> None:
        """Ask for no more tasks, now and at every heartbeat."""
        self.book.draining = True
        self.book.beat()
        self._out(self.peer.leave())

    def rejoin(self) -> None:
        """Ask for tasks again."""
        self.book.draining = False
        self.book.beat()
        self._out(self.peer.heartbeat())

    def check(self) -> None:
        """Check what must hold, if anything was done to the pool since the last check."""
        if self._touched:
            self._touched = False
            self.book.check(self.peer)

    def receive(self, message: ToPool) -> None:
        """Take in what the dispatcher says."""
        if self.up:
            if self._world.trace is not None:
                self._world.note("{} hears {}", self.name, message_text(message))
            self.book.told(message)
            self._touched = True
            self.peer.receive(message)

    def admit(self, session: int, pick: Pick) -> bool:
        """Take a client or turn it away; return True if its session is open now."""
        if session not in self.book.sessions and (self.book.draining or self.peer.full):
            self._world.fault("refusal", "{} turns session {} away", self.name, session)
            self.book.refuse(pick)
            self._out(self.peer.refuse(pick.ticket, pick.threshold))
            return False
        self.book.begin(session, pick)
        self._out(self.peer.begin(session, pick.ticket, pick.threshold))
        return True

    def end(self, session: int, incarnation: int) -> None:
        """End a session, if the pool that took it still runs."""
        if self.up and self.incarnation == incarnation:
            self._world.note("session {} at {} ends", session, self.name)
            self.book.end(session)
            self._out(self.peer.end(session))

    def _beat(self, incarnation: int) -> None:
        if self.up and self.incarnation == incarnation:
            self.book.beat()
            self._out(self.peer.leave() if self.book.draining else self.peer.heartbeat())
            self._world.after(HEARTBEAT * (0.8 + 0.2 * self._world.random.random()), self._beat, incarnation)

    def _out(self, message: ToDispatcher | None) -> None:
        """Send what the state machine returned. It is called after every call of it."""
        self._touched = True
        self.book.check_sent(message)
        if message is not None:
            if self._world.trace is not None:
                self._world.note("  sends {}", message_text(message))
            self._send(self.name, message)


class FrontEnd:
    """A process that carries messages to the dispatcher's state, and answers clients."""

    def __init__(
        self, name: str, world: World, setup: Setup, network: Network, state: DispatcherState,
        to_pool: Callable[[PoolId, ToPool], None],
    ) -> None:  # fmt: skip
        self.name = name
        self.up = True
        self._world = world
        self._setup = setup
        self._network = network
        self._state = state
        self._to_pool = to_pool
        self._calm = False

    def calm(self) -> None:
        """Crash no more."""
        self._calm = True

    def crash(self) -> None:
        """Stop. If the dispatcher's state is in this process, it is lost."""
        self.up = False

    def start(self) -> None:
        """Start again; with nothing, if the dispatcher's state was in this process."""
        if not self.up and self._setup.embedded:
            self._state.start()
        self.up = True

    def receive(self, message: ToDispatcher) -> None:
        """Carry a pool's message to the state."""
        if self._works():
            reply = self._state.receive(message)
            if not self._crashes() and reply is not None:
                pool = message.report.pool
                self._network.send(self.name, str(pool), self._to_pool, pool, reply)

    def request(
        self, client: str, key: Hashable, exclude: frozenset[PoolId], answer: Callable[[Pick | None], None]
    ) -> None:
        """Answer a client."""
        if self._works():
            pick = self._state.pick(key, exclude)
            if not self._crashes():
                self._network.send(self.name, client, answer, pick)

    def release(self, pick: Pick) -> None:
        """Give back the place of a client that will not come."""
        if self._works():
            self._state.release(pick.pool, pick.ticket)
            self._crashes()

    def _works(self) -> bool:
        """Return True if a message that comes now has an effect."""
        if not self.up:
            self._world.fault("front-end down", "{}", self.name)
        elif not self._state.reachable or not self._network.connected(self.name, STORE):
            self._world.fault("store unreachable", "from {}", self.name)
        else:
            return True
        return False

    def _crashes(self) -> bool:
        """Crash now and then between a write and its answer; return True then."""
        if not self._calm and not self._setup.embedded and self._world.chance(self._setup.crash_after_write):
            self._world.fault("crash after write", "{}", self.name)
            self.crash()
            self._world.after(self._world.random.random(), self.start)
            return True
        return False
