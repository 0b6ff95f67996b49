"""The routes of the dispatcher's admin port."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, HTTPException, Path
from fastapi.responses import Response

from evenly.live.addresses import Address
from evenly.live.admin.exposition import CONTENT_TYPE
from evenly.live.admin.responses import stepped_response
from evenly.live.admin.shell import admin_shell, answer, problem, refusing
from evenly.live.dashboard.feed import Feed
from evenly.live.dispatcher.fleet import Fleet
from evenly.live.dispatcher.metrics import fleet_metrics
from evenly.live.dispatcher.snapshot import FleetSnapshot, pool_json
from evenly.live.dispatcher.views import POOL_EXAMPLE, STATE_EXAMPLE, FleetPoolView, FleetView
from evenly.live.dispatcher.watch import Watch
from evenly.live.log import Log
from evenly.live.session_id import MAX_POOL_NAME, check_pool_name
from evenly.live.store.base import FleetState, StoreUnavailableError, next_order

_ABOUT = """Inspect the fleet, drain its pools, and check the dispatcher's health.
A rejected request is answered with {"detail": "the reason, in one sentence"}."""
_NO_STORE = "The store cannot be reached."

PoolName = Annotated[str, Path(description="Name of the pool.", max_length=MAX_POOL_NAME, examples=["game-7"])]


def dispatcher_admin(
    fleet: Fleet, watch: Watch, *, token: str | None, bound: Address, log: Log, feed: Feed
) -> FastAPI:
    """Return the application. `bound` is the address it serves on, `feed` what the dashboard shows."""
    return admin_shell(
        about=_ABOUT,
        token=token,
        bound=bound,
        routers={"Inspect": _inspect_routes(fleet), "Pools": _pool_routes(fleet, log)},
        why_not_ready=watch.why_not_ready,
        store_available=fleet.store_available,
        feed=feed,
    )


def _inspect_routes(fleet: Fleet) -> APIRouter:
    router = APIRouter(responses=problem(503, _NO_STORE))

    @router.get(
        "/state", summary="The whole state as JSON", response_model=FleetView, responses=answer(STATE_EXAMPLE)
    )
    async def state() -> Response:
        """Threshold, pools and their sessions, tokens, messages, picks, and the store."""
        return await stepped_response((await snapshot()).json(), "application/json")

    sample = 'evenly_threshold 5.0\nevenly_pool_sessions{pool="game-7"} 6.0'
    answers = answer(sample, "text/plain")

    @router.get("/metrics", summary="Metrics for Prometheus", response_class=Response, responses=answers)
    async def metrics() -> Response:
        """Sessions, threshold, tokens, picks, errors, messages, and a histogram of pick latency."""
        return await stepped_response(fleet_metrics(await snapshot(), fleet.counters.latency), CONTENT_TYPE)

    async def snapshot() -> FleetSnapshot:
        try:
            return await fleet.snapshot()
        except StoreUnavailableError:
            raise HTTPException(503, _NO_STORE) from None

    return router


def _pool_routes(fleet: Fleet, log: Log) -> APIRouter:
    router = APIRouter(
        prefix="/pools",
        responses=problem(404, "There is no such pool.")
        | problem(422, "The name is not valid.")
        | problem(503, _NO_STORE),
    )
    store = fleet.open_store.store

    answers = answer({**POOL_EXAMPLE, "state": "draining"})

    @router.post("/{name}/drain", summary="Drain a pool", responses=answers)
    async def drain(name: PoolName) -> FleetPoolView:
        """The pool gets no new sessions, also if its agent restarts. Its open sessions continue."""
        if await find(name) is None:
            raise HTTPException(404, f"There is no pool {name} now.")
        view = await give(name, drained=True)
        if view is None:  # meanwhile
            raise HTTPException(404, f"There is no pool {name} now.")
        return view

    not_here: dict[int | str, dict[str, Any]] = {204: {"description": "The pool is not there now."}}

    @router.post(
        "/{name}/undrain",
        summary="Undrain a pool",
        responses=answer(POOL_EXAMPLE) | not_here,
        response_model=FleetPoolView,
    )
    async def undrain(name: PoolName) -> FleetPoolView | Response:
        """The pool gets new sessions again. A pool that is not there now will get them when it comes back."""
        view = await give(name, drained=False)
        return Response(status_code=204) if view is None else view

    async def give(name: str, *, drained: bool) -> FleetPoolView | None:
        with refusing(422):
            check_pool_name(name)
        known = (await state()).orders.get(name)
        with refusing(422):
            await store.order(name, next_order(known, drained=drained))
        log.event("pool drained" if drained else "pool undrained", pool=name)
        return await find(name)

    async def find(name: str) -> FleetPoolView | None:
        with refusing(422):
            check_pool_name(name)
        found = next((pool for pool in (await state()).pools if pool.name == name), None)
        if found is None:
            return None
        return FleetPoolView.model_validate(pool_json(found, connected=name in fleet.hub.connections))

    async def state() -> FleetState:
        try:
            return await store.state()
        except StoreUnavailableError:
            raise HTTPException(503, _NO_STORE) from None

    return router
