"""What a dispatcher counts since its start."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from evenly.core import Color
from evenly.core.protocol import Kind, ToDispatcher
from evenly.live.balancer.latency import Latency


@dataclass(slots=True)
class AgentMessages:
    """Messages from agents, by reason. `green` and `yellow` bring tokens: at most one for each session."""

    green: int = 0
    yellow: int = 0
    heartbeats: int = 0
    refusals: int = 0
    leaves: int = 0

    def count(self, message: ToDispatcher) -> None:
        """Count one message."""
        kind, color = message.kind, message.report.color
        if kind is Kind.TOKEN:
            if color is Color.GREEN:
                self.green += 1
            else:
                self.yellow += 1
        elif kind is Kind.HEARTBEAT:
            self.heartbeats += 1
        elif kind is Kind.REFUSAL:
            self.refusals += 1
        else:
            self.leaves += 1


@dataclass(slots=True)
class Counters:
    """Counts of this process: picks by color, errors by code, messages, and how long picks take."""

    picks: Counter[str] = field(default_factory=lambda: Counter(green=0, yellow=0, any=0))
    errors: Counter[str] = field(default_factory=Counter)
    messages: AgentMessages = field(default_factory=AgentMessages)
    rejected_agents: int = 0
    latency: Latency = field(default_factory=Latency)
