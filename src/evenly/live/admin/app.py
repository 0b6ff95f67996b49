"""The routes of the admin port: inspect the balancer, change its pools, check its health."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, FastAPI, Path
from fastapi.responses import Response

from evenly.live.addresses import Address, check_pools, checked_weight, parse_address
from evenly.live.admin.exposition import CONTENT_TYPE
from evenly.live.admin.metrics import balancer_metrics
from evenly.live.admin.responses import stepped_response
from evenly.live.admin.schema import (
    STATE_EXAMPLE,
    DiscoveryView,
    EnvoyView,
    NewPool,
    NewWeight,
    PoolView,
    RefusedView,
    StateView,
    StoreView,
    pool_view,
)
from evenly.live.admin.shell import Responses, admin_shell, answer, problem, refusing
from evenly.live.admin.snapshot import Snapshot
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.lifecycle import Event
from evenly.live.balancer.pool import LivePool
from evenly.live.dashboard.feed import Feed

_ABOUT = """Inspect the balancer, change its pools while it runs, and check its health.
A rejected request is answered with {"detail": "the reason, in one sentence"}."""

PoolPath = Annotated[
    str, Path(description="Address of the pool, HOST:PORT.", max_length=300, examples=["127.0.0.1:9001"])
]


async def _at_once(_: LivePool) -> None:
    """Wait for no checks."""


def admin_app(
    *,
    balancer: Balancer,
    latency: Latency,
    envoys: Callable[[], Iterable[EnvoyView]],
    token: str | None,
    bound: Address,
    resolve: Callable[[Address], Awaitable[Address]],
    ready: Callable[[], bool],
    publish: Callable[[], None],
    feed: Feed,
    store: Callable[[], StoreView | None] = lambda: None,
    discovery: Callable[[], Sequence[DiscoveryView]] = lambda: (),
    by_hand: Callable[[Address, Event], None] = lambda _, __: None,
    checked: Callable[[LivePool], Awaitable[None]] = _at_once,
    refused: Callable[[], RefusedView | None] = lambda: None,
    returns: Callable[[], dict[str, int] | None] = lambda: None,
    refusing: Callable[[], bool] = lambda: False,
    restarts: Callable[[], Mapping[str, int] | None] = lambda: None,
    changes_survive: Callable[[], bool] = lambda: False,
) -> FastAPI:
    """Return the application. `bound` is the address it serves on; `resolve` looks a host name up.

    `publish` is called after each change of a pool, before the answer: an acknowledged change survives a crash.
    `by_hand` is called with each change before that: DNS must not undo it. `checked` waits a moment for the health
    checks of a new pool. `feed` is what the dashboard shows. `restarts` counts the restarts of a gateway's
    processes. `changes_survive` returns whether a restart keeps what these routes change.
    """

    async def why_not_ready() -> str | None:
        if ready():
            return None
        return "Not accepting sessions: the gateway is draining or restarting Envoy, or no pool can be picked."

    return admin_shell(
        about=_ABOUT,
        token=token,
        bound=bound,
        routers={
            "Inspect": _inspect_routes(
                balancer, latency, envoys, store, discovery, refused, returns, restarts, changes_survive
            ),
            "Pools": _pool_routes(balancer, resolve, by_hand, publish, checked),
        },
        why_not_ready=why_not_ready,
        store_available=lambda: None if (seen := store()) is None else seen.available,
        feed=feed,
        refusing=refusing,
    )


def _inspect_routes(
    balancer: Balancer,
    latency: Latency,
    envoys: Callable[[], Iterable[EnvoyView]],
    store: Callable[[], StoreView | None],
    discovery: Callable[[], Sequence[DiscoveryView]],
    refused: Callable[[], RefusedView | None],
    returns: Callable[[], dict[str, int] | None],
    restarts: Callable[[], Mapping[str, int] | None],
    changes_survive: Callable[[], bool],
) -> APIRouter:
    router = APIRouter()

    @router.get(
        "/state", summary="The whole state as JSON", response_model=StateView, responses=answer(STATE_EXAMPLE)
    )
    async def state() -> Response:
        """Policy, threshold, pools and their sessions, tokens, messages, and the connected Envoys."""
        survive = changes_survive()
        pieces = Snapshot(balancer).json(envoys(), store(), discovery(), changes_survive=survive)
        return await stepped_response(pieces, "application/json")

    sample = 'evenly_threshold 5.0\nevenly_pool_sessions{pool="127.0.0.1:9001"} 6.0'
    answers = answer(sample, "text/plain")

    @router.get("/metrics", summary="Metrics for Prometheus", response_class=Response, responses=answers)
    async def metrics() -> Response:
        """Sessions, threshold, tokens, picks, messages, and a histogram of pick latency."""
        text = balancer_metrics(balancer, latency, store(), refused(), returns(), discovery(), restarts())
        return await stepped_response(text, CONTENT_TYPE)

    return router


def _pool_routes(
    balancer: Balancer,
    resolve: Callable[[Address], Awaitable[Address]],
    by_hand: Callable[[Address, Event], None],
    publish: Callable[[], None],
    checked: Callable[[LivePool], Awaitable[None]],
) -> APIRouter:
    router = APIRouter(prefix="/pools", responses=problem(422, "The address or the weight is not valid."))
    unknown = problem(404, "There is no such pool.")
    there = problem(409, "The pool already exists, or the policy ignores weights.")
    blind = problem(409, "The policy ignores weights.")

    @router.post("", summary="Add a pool", status_code=201, responses=_pool_answer("warming", 0, 201) | there)
    async def add(pool: NewPool) -> PoolView:
        """The pool fills slowly at first (slow start). A leaving pool is added again with its open sessions.

        The answer waits for the first health checks, two seconds at most. If the state is then `checking`, some
        requests may not reach the pool yet.
        """
        with refusing(422):
            address, weight = _pool_address(pool.address), checked_weight(pool.weight)
            endpoint = await resolve(address)
        with refusing(409):
            added = balancer.add(address, endpoint, weight=weight)
        by_hand(address, Event.ADD)
        publish()
        await checked(added)
        return pool_view(added)

    answers = _pool_answer("draining", 6) | unknown

    @router.post("/{address}/drain", summary="Drain a pool", responses=answers)
    async def drain(address: PoolPath) -> PoolView:
        """The pool gets no new sessions. Its open sessions continue."""
        return changed(address, balancer.drain, Event.DRAIN)

    answers = _pool_answer("warming", 2) | unknown

    @router.post("/{address}/undrain", summary="Undrain a pool", responses=answers)
    async def undrain(address: PoolPath) -> PoolView:
        """The pool gets new sessions again. It fills slowly at first (slow start)."""
        return changed(address, balancer.undrain, Event.UNDRAIN)

    answers = _pool_answer("serving", 6) | unknown | blind

    @router.put("/{address}/weight", summary="Change the weight of a pool", responses=answers)
    async def weigh(address: PoolPath, new: NewWeight) -> PoolView:
        """The open sessions stay where they are. New ones go where the new weights want them."""
        with refusing(422):
            weight = checked_weight(new.weight)

        def change(pool: Address) -> None:
            with refusing(409):
                balancer.set_weights({pool: weight})

        return changed(address, change)

    answers = _pool_answer("leaving", 6) | unknown

    @router.delete("/{address}", summary="Remove a pool", responses=answers)
    async def remove(address: PoolPath) -> PoolView:
        """The pool gets no new sessions, and is gone when its last session ends."""
        return changed(address, balancer.remove, Event.REMOVE)

    def changed(text: str, change: Callable[[Address], None], event: Event | None = None) -> PoolView:
        with refusing(422):
            address = _pool_address(text)
        with refusing(404):
            pool = balancer.pool(address)
        change(address)
        if event is not None:
            by_hand(address, event)
        publish()
        return pool_view(pool)

    return router


def _pool_answer(state: str, sessions: int, status: int = 200) -> Responses:
    view = {
        "address": "127.0.0.1:9001",
        "sessions": sessions,
        "unpicked": 0,
        "elsewhere": 0,
        "state": state,
        "weight": 1.0,
        "source": "",
    }
    return answer(view, status=status)


def _pool_address(text: str) -> Address:
    address = parse_address(text)
    check_pools([address])
    return address
