"""All machines of a schedule and the wires between them."""

from dataclasses import dataclass

from evenly.core import PoolId
from evenly.core.protocol import DispatcherPeer, PoolPeer, ToDispatcher, ToPool
from tests.faults.network.clients import Clients
from tests.faults.network.crashes import Crashes
from tests.faults.network.network import Network
from tests.faults.network.nodes import FrontEnd, PoolNode
from tests.faults.network.setup import HEARTBEAT, Setup
from tests.faults.network.state import DispatcherState
from tests.faults.network.world import ViolationError, World


@dataclass(frozen=True, kw_only=True)
class Peers:
    """The state machines under test: the real ones, unless a test breaks them."""

    dispatcher: type[DispatcherPeer] = DispatcherPeer
    pool: type[PoolPeer] = PoolPeer


class System:
    """Pools, front-ends, the dispatcher's state, clients, and what goes wrong with them."""

    def __init__(self, world: World, setup: Setup, peers: Peers) -> None:
        self.world = world
        self.setup = setup
        self.network = Network(world, setup)
        self.state = DispatcherState(world, setup, peers.dispatcher)
        self.pools = [PoolNode(f"pool {n}", world, setup, self._send, peers.pool) for n in range(setup.pools)]
        self._by_name = {node.name: node for node in self.pools}
        self.fronts = [
            FrontEnd(f"front-end {n}", world, setup, self.network, self.state, self._to_pool)
            for n in range(setup.fronts)
        ]
        self.clients = Clients(world, setup, self.network, self.fronts, self._by_name)
        self.crashes = Crashes(world, setup, self.network, self.state, self.fronts, self.pools)
        self.calm = False
        world.after_event = self._check

    def run(self) -> None:
        """Let everything go wrong for the schedule's duration."""
        for node in self.pools:
            self.world.after(HEARTBEAT * self.world.random.random(), node.start)
        self.crashes.start()
        self.clients.come()
        self.world.run_until(self.setup.duration)

    def _send(self, pool: str, message: ToDispatcher) -> None:
        """Send a pool's message to any front-end. After the faults, pools know which ones work."""
        fronts = [front for front in self.fronts if front.up] if self.calm else self.fronts
        front = fronts[0] if len(fronts) == 1 else self.world.random.choice(fronts)
        self.network.send(pool, front.name, self._deliver, front, pool, message)

    def _deliver(self, front: FrontEnd, pool: str, message: ToDispatcher) -> None:
        self.world.note("message {} of {} reaches {}", message.sequence, pool, front.name)
        front.receive(message)

    def _to_pool(self, pool: PoolId, message: ToPool) -> None:
        self._by_name[str(pool)].receive(message)

    def _check(self) -> None:
        """Check what must hold after every event. Only calls change a state machine, so the others are skipped."""
        self.state.check()
        for node in self.pools:
            try:
                node.check()
            except ViolationError as error:
                raise ViolationError(f"{node.name}: {error}") from None
