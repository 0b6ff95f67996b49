"""What goes wrong with the machines, and when: crashes, failovers, partitions, and pools that drain."""

from collections.abc import Callable

from tests.faults.network.network import Network
from tests.faults.network.nodes import STORE, FrontEnd, PoolNode
from tests.faults.network.setup import Setup
from tests.faults.network.state import DispatcherState
from tests.faults.network.world import World

_MOST_FORGOTTEN = 12  # writes


class Crashes:
    """Everything bad that happens outside the network's usual behaviour, at random times until `stop`."""

    def __init__(
        self, world: World, setup: Setup, network: Network, state: DispatcherState,
        fronts: list[FrontEnd], pools: list[PoolNode],
    ) -> None:  # fmt: skip
        self._world = world
        self._setup = setup
        self._network = network
        self._state = state
        self._fronts = fronts
        self._pools = pools
        self._stopped = False

    def start(self) -> None:
        """Plan the first fault of every kind."""
        setup = self._setup
        self._repeat(setup.pool_crashes, self._crash_pool)
        self._repeat(setup.front_crashes, self._crash_front)
        self._repeat(setup.partitions, self._partition)
        self._repeat(setup.drains, self._drain)
        self._repeat(setup.operator_drains, self._operator_drain)
        if not setup.embedded:
            self._repeat(setup.store_crashes, self._crash_store)
            self._repeat(setup.failovers, self._fail_over)

    def stop(self) -> None:
        """Let nothing more go wrong, and nothing restart by itself."""
        self._stopped = True
        for node in self._pools:
            self._state.undrain(node.name)

    def _repeat(self, rate: float, strike: Callable[[], None]) -> None:
        if rate > 0:
            self._world.after(self._world.random.expovariate(rate), self._strike, rate, strike)

    def _strike(self, rate: float, strike: Callable[[], None]) -> None:
        if not self._stopped:
            strike()
            self._repeat(rate, strike)

    def _later(self, longest: float, action: Callable[..., None], *arguments: object) -> None:
        """Undo a fault after a while, unless the faults have ended."""
        self._world.after(longest * self._world.random.random(), self._undo, action, arguments)

    def _undo(self, action: Callable[..., None], arguments: tuple[object, ...]) -> None:
        if not self._stopped:
            action(*arguments)

    def _crash_pool(self) -> None:
        node = self._world.random.choice(self._pools)
        if node.up:
            self._world.fault("pool crash", "{}", node.name)
            node.crash()
            if not self._world.chance(0.1):
                self._later(1.5 * self._setup.silence, self._restart_pool, node)

    def _restart_pool(self, node: PoolNode) -> None:
        self._world.fault("pool restart", "{}", node.name)
        node.start()

    def _crash_front(self) -> None:
        front = self._world.random.choice(self._fronts)
        if front.up:
            self._world.fault("dispatcher crash" if self._setup.embedded else "front-end crash", "{}", front.name)
            front.crash()
            self._later(1.5, self._restart_front, front)

    def _restart_front(self, front: FrontEnd) -> None:
        self._world.note("{} is back", front.name)
        front.start()

    def _crash_store(self) -> None:
        if self._state.reachable:
            self._world.fault("store crash")
            self._state.reachable = False
            self._later(1.5, self._restart_store)

    def _restart_store(self) -> None:
        self._world.note("the store is back")
        self._state.reachable = True

    def _fail_over(self) -> None:
        forgotten = self._world.random.randint(0, _MOST_FORGOTTEN)
        self._world.fault("failover", "the last {} writes are forgotten", forgotten)
        self._world.faults["forgotten write"] += forgotten
        self._state.fail_over(forgotten)

    def _partition(self) -> None:
        chance = self._world.random
        pools = [node.name for node in self._pools if chance.random() < 0.5]
        fronts = [front.name for front in self._fronts if chance.random() < 0.7]
        there = [(pool, front) for pool in pools for front in fronts]
        back = [(front, pool) for pool, front in there]
        links = chance.choice((there, back, there + back))
        if not self._setup.embedded and chance.random() < 0.2:
            links = links + [(front, STORE) for front in fronts]
        self._world.fault("partition", "{}", links)
        self._network.cut(links)
        self._later(2 * self._setup.silence, self._heal, links)

    def _heal(self, links: list[tuple[str, str]]) -> None:
        self._world.note("a partition heals: {}", links)
        self._network.heal(links)

    def _drain(self) -> None:
        node = self._world.random.choice(self._pools)
        if node.up and not node.draining:
            self._world.fault("drain", "{}", node.name)
            node.drain()
            self._later(3.0, self._rejoin, node, node.incarnation)

    def _operator_drain(self) -> None:
        node = self._world.random.choice(self._pools)
        self._world.fault("operator's drain", "{}", node.name)
        self._state.drain(node.name)
        self._later(4.0, self._operator_undrain, node)

    def _operator_undrain(self, node: PoolNode) -> None:
        self._world.note("the operator takes {} back", node.name)
        self._state.undrain(node.name)

    def _rejoin(self, node: PoolNode, incarnation: int) -> None:
        if node.up and node.incarnation == incarnation:
            self._world.note("{} wants tasks again", node.name)
            node.rejoin()
