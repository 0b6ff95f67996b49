"""Discovery in the picker: made from its settings and its state file, and shown on the admin port."""

from __future__ import annotations

import time
from math import isfinite
from typing import TypedDict

from evenly.live.admin.schema import DiscoveryView
from evenly.live.balancer.balancer import Balancer
from evenly.live.dashboard.source import Part
from evenly.live.discovery.by_hand import ByHand, Hold
from evenly.live.discovery.discovery import Discovery, age
from evenly.live.log import Log
from evenly.live.picker.state_file import KnownAnswer, KnownHold, KnownServer, PickerState
from evenly.live.settings import Settings, follows_weights


class KnownAnswers(TypedDict):
    """The part of `PickerState` that discovery keeps."""

    answers: list[KnownAnswer]
    by_hand: list[KnownHold]


def make_discovery(balancer: Balancer, log: Log, settings: Settings, restored: PickerState | None) -> Discovery:
    """Return the discovery of a picker, with the answers and decisions that an earlier one knew."""
    holds = [] if restored is None else restored.by_hand
    answers = [] if restored is None else restored.answers
    return Discovery(
        balancer,
        log,
        clock=time.time,
        weighs=follows_weights(settings.policy),
        resolver=settings.resolver,
        by_hand=ByHand(time.time, [(hold.address, Hold(hold.removed, hold.listed)) for hold in holds]),
        answers={known.source: {server.address: server.weight for server in known.servers} for known in answers},
    )


def known_answers(discovery: Discovery) -> KnownAnswers:
    """Return what the state file keeps of discovery."""
    return KnownAnswers(
        answers=[
            KnownAnswer(
                source=each.source.text,
                servers=[KnownServer(address=address, weight=weight) for address, weight in each.servers.items()],
            )
            for each in discovery.followed
            if each.servers is not None
        ],
        by_hand=[
            KnownHold(address=address, removed=hold.removed, listed=hold.listed)
            for address, hold in discovery.by_hand.holds.items()
        ],
    )


def discovery_views(discovery: Discovery) -> list[DiscoveryView]:
    """Return the sources as the admin port shows them."""
    now = time.time()
    return [
        DiscoveryView(
            source=each.source.text,
            servers=len(each.servers or ()),
            age=round(seconds, 1) if isfinite(seconds := age(each, now)) else None,
            failures=each.failures,
            problem=each.problem,
        )
        for each in discovery.followed
    ]


def discovery_parts(discovery: Discovery) -> list[Part]:
    """Return the sources as the dashboard shows them, beside the other processes."""
    return [
        Part(
            kind="DNS",
            name=view.source,
            reachable=not view.problem,
            heard=view.age,
            note=f"{view.servers} servers" + (f"; {view.problem}" if view.problem else ""),
        )
        for view in discovery_views(discovery)
    ]
