"""A network that delays, loses, repeats and reorders messages, and is cut in places, in one direction too."""

from collections.abc import Callable

from tests.faults.network.setup import Setup
from tests.faults.network.world import World


class Network:
    """Delivers messages between named nodes, badly until `calm` is called, and then in time and once each."""

    def __init__(self, world: World, setup: Setup) -> None:
        self._world = world
        self._setup = setup
        self._calm = False
        self._mute: list[str] = []
        self._deaf: list[str] = []
        self._cuts: dict[tuple[str, str], int] = {}  # from, to: the number of cuts that separate them
        self._latest: dict[tuple[str, str], float] = {}  # when the last message on a link is due

    def calm(self, mute: list[str], deaf: list[str]) -> None:
        """End all faults, except that nothing comes from these nodes, or nothing comes to them.

        What is on the way arrives when it would have.
        """
        self._calm = True
        self._mute, self._deaf = mute, deaf
        self._cuts.clear()

    def cut(self, links: list[tuple[str, str]]) -> None:
        """Stop everything on these links, given as pairs of source and target."""
        for link in links:
            self._cuts[link] = self._cuts.get(link, 0) + 1

    def heal(self, links: list[tuple[str, str]]) -> None:
        """Undo one `cut` of these links."""
        for link in links:
            left = self._cuts.pop(link, 0) - 1
            if left > 0:
                self._cuts[link] = left

    def connected(self, source: str, target: str) -> bool:
        """Return True unless the link is cut."""
        return (source, target) not in self._cuts

    def send(self, source: str, target: str, deliver: Callable[..., None], *arguments: object) -> None:
        """Carry a message: call `deliver` with the arguments never, once or twice, at some time."""
        world, setup = self._world, self._setup
        if self._calm:
            if source in self._mute or target in self._deaf:
                return
            world.after(setup.delay * world.random.random(), deliver, *arguments)
            return
        link = (source, target)
        if link in self._cuts:
            one_way = (target, source) not in self._cuts
            world.fault("cut off, one way" if one_way else "cut off", "{} to {}", source, target)
        elif world.chance(setup.loss):
            world.fault("loss", "{} to {}", source, target)
        else:
            self._carry(link, deliver, arguments)
            if world.chance(setup.duplication):
                world.fault("duplication", "{} to {}", source, target)
                self._carry(link, deliver, arguments)

    def _carry(self, link: tuple[str, str], deliver: Callable[..., None], arguments: tuple[object, ...]) -> None:
        world, setup = self._world, self._setup
        delay = setup.delay * world.random.random()
        if world.chance(setup.lateness):
            delay = setup.longest_delay * world.random.random()
            world.fault("delay", "{} to {} by {:.3f}", *link, delay)
        due, latest = world.now + delay, self._latest.get(link, 0.0)
        if due < latest:
            world.fault("reordering", "{} to {}", *link)
        self._latest[link] = max(due, latest)
        world.after(delay, deliver, *arguments)
