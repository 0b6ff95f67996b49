"""Messages on one short line, for traces."""

from evenly.core.protocol import Pick, ToDispatcher, ToPool
from evenly.core.protocol.dispatcher_peer import TERM


def number(value: int) -> str:
    """Return a ticket or a version as its term and its place in it."""
    return f"{value // TERM}:{value % TERM}"


def message_text(message: ToDispatcher | ToPool | Pick | None) -> str:
    """Return a message in one line."""
    match message:
        case ToDispatcher():
            arrived = " ".join(f"{number(first)}-{last % TERM}" for first, last in message.arrived)
            return (
                f"{message.kind.value} {message.incarnation}/{message.sequence} of {message.report.pool}: "
                f"{message.report.tasks} tasks, version {number(message.version)}, arrived [{arrived}]"
            )
        case ToPool():
            version, oldest = number(message.version), number(message.oldest_ticket)
            return f"threshold {message.threshold}, version {version}, oldest ticket {oldest}"
        case Pick():
            return f"{message.pool}, ticket {number(message.ticket)}, expires {message.expires:.4f}"
    return "no pool"
