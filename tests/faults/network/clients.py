"""The clients: they ask for a pool, ask again, and come in time, late or never."""

from dataclasses import dataclass
from functools import partial

from evenly.core import PoolId
from evenly.core.protocol import Pick
from tests.faults.network.network import Network
from tests.faults.network.nodes import FrontEnd, PoolNode
from tests.faults.network.setup import Setup
from tests.faults.network.text import number
from tests.faults.network.world import World

CLIENTS = "clients"
_TRIES = 4


@dataclass(slots=True)
class Client:
    """A client: the key of its request and the first answer. `prompt` means that it comes at once.

    `exclude` are the pools that have turned it away.
    """

    key: int
    prompt: bool = False
    tries: int = 0
    pick: Pick | None = None
    exclude: frozenset[PoolId] = frozenset()


class Clients:
    """All clients, as they come one after the other."""

    def __init__(
        self, world: World, setup: Setup, network: Network, fronts: list[FrontEnd], pools: dict[str, PoolNode]
    ) -> None:
        self._world = world
        self._setup = setup
        self._network = network
        self._fronts = fronts
        self._pools = pools
        self._keys = 0
        self._stopped = False
        self.arrived: dict[tuple[str, int], int] = {}  # pool, ticket: the incarnation that saw it last

    def stop(self) -> None:
        """Keep all sessions as they are: no client comes, and no session ends by itself."""
        self._stopped = True

    def come(self) -> None:
        """Let a client come, and later the next one."""
        if self._stopped:
            return
        self._ask(Client(self._next_key()))
        self._world.after(self._world.random.expovariate(self._setup.clients), self.come)

    def come_promptly(self) -> None:
        """Let one client come without any trouble, after `stop` too."""
        self._ask(Client(self._next_key(), prompt=True))

    def _next_key(self) -> int:
        self._keys += 1
        return self._keys

    def _ask(self, client: Client) -> None:
        client.tries += 1
        self._request(client)
        if not client.prompt:
            if self._world.chance(self._setup.second_asks):
                self._world.faults["asked twice"] += 1
                self._request(client)
            self._world.after(0.1 + self._world.random.random(), self._ask_again, client)

    def _request(self, client: Client) -> None:
        fronts = [front for front in self._fronts if front.up] if client.prompt else self._fronts
        front = self._world.random.choice(fronts)
        self._world.note("request {} goes to {}", client.key, front.name)
        self._network.send(CLIENTS, front.name, front.request, CLIENTS, client.key, client.exclude,
                           partial(self._answer, client))  # fmt: skip

    def _ask_again(self, client: Client) -> None:
        if client.pick is None and client.tries < _TRIES and not self._stopped:
            self._world.faults["retry"] += 1
            self._ask(client)

    def _answer(self, client: Client, pick: Pick | None) -> None:
        if pick is None or (self._stopped and not client.prompt):
            return
        if client.pick is not None:
            self._world.faults["another answer"] += client.pick != pick
            return
        client.pick = pick
        world, setup = self._world, self._setup
        if client.prompt:
            self._arrive(client, pick)
        elif world.chance(setup.no_shows):
            world.fault("no-show", "client {}", client.key)
            if world.chance(0.3):
                front = world.random.choice(self._fronts)
                self._network.send(CLIENTS, front.name, front.release, pick)
        elif world.chance(setup.late_clients):
            world.fault("late client", "{}", client.key)
            world.after(setup.lease * (0.9 + world.random.random()), self._arrive, client, pick)
        else:
            world.after(world.random.random() * world.random.choice((setup.delay, setup.lease)),
                        self._arrive, client, pick)  # fmt: skip

    def _arrive(self, client: Client, pick: Pick) -> None:
        if self._stopped and not client.prompt:
            return
        key, world, node = client.key, self._world, self._pools[str(pick.pool)]
        world.note("client {} comes to {} with ticket {}", key, node.name, number(pick.ticket))
        if not node.up:
            world.fault("pool down", "{}", node.name)
            self._try_elsewhere(client, pick)
            return
        self.arrived[node.name, pick.ticket] = node.incarnation
        if node.admit(key, pick):
            world.after(world.random.expovariate(1 / self._setup.session), self._end, node, key, node.incarnation)
            if world.chance(0.1) and not client.prompt:
                world.fault("reconnection", "client {}", key)
                world.after(world.random.random(), self._arrive, client, pick)
        else:
            self._try_elsewhere(client, pick)

    def _try_elsewhere(self, client: Client, pick: Pick) -> None:
        """Ask for another pool, under a new key."""
        if self._world.chance(self._setup.second_tries):
            self._world.faults["elsewhere"] += 1
            self._ask(Client(self._next_key(), prompt=client.prompt, exclude=client.exclude | {pick.pool}))

    def _end(self, node: PoolNode, key: int, incarnation: int) -> None:
        if not self._stopped:
            node.end(key, incarnation)
