"""Write the generated parts of the architecture page, two pictures and a table, from `rooms.py`.

    python -m tests.project.draw_rooms

A test checks that the files are current.
"""

from collections.abc import Mapping
from html import escape
from pathlib import Path

from tests.project.rooms import ROOMS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "architecture.md"
START, END = "<!-- rooms: generated -->", "<!-- rooms: end -->"
HALLWAY = ("errors", "inputs", "files", "policies", "frames", "lazy")
_DOORS = ("__init__", "__main__")
# Column and row of each card, chosen so that no arrow passes behind a card.
HOUSE = {
    "cli": (1, 0),
    "whatif": (3, 1), "sweeps": (4, 1),
    "paper": (0, 2), "advice": (1, 2), "live": (2, 2),
    "theory": (0, 3), "sim": (1, 3), "faults": (4, 3), "testing": (5, 3),
    "plots": (0, 4), "own_policy": (0.95, 4), "web": (3, 4),
    "workload": (1, 5), "core": (2, 5), "logs": (3, 5),
    "hallway": (1.5, 6),
}  # fmt: skip
LIVE = {
    "agents.sidecar": (0.5, 0), "demo.fleet": (2, 0),
    "agents": (0, 1), "picker": (1, 1), "dispatcher": (2, 1), "demo": (4.6, 1),
    "discovery": (1.5, 2), "admin": (3, 2), "gateway": (4, 2),
    "http": (0.5, 3), "store": (1.33, 3), "picker.ready": (2.17, 3), "envoy": (3, 3), "admin.schema": (4.6, 3),
    "wire": (2.1, 4), "balancer": (3, 4), "dashboard": (4, 4),
    "addresses": (0, 5), "pool_scheme": (0, 6),
}  # fmt: skip
_TALL = "live"  # extends into the next row
_CARD, _LINE, _GAP, _ROW_GAP, _MARGIN = 170, 16, 44, 46, 20  # pixels

Graph = dict[str, set[str]]


def house() -> tuple[Graph, dict[str, list[str]]]:
    """Return the top-level rooms with the ones that they import, and the rooms directly inside each."""
    graph: Graph = {}
    inside: dict[str, list[str]] = {}
    for name, room in ROOMS.items():
        if name in _DOORS:
            continue
        own = _top(name)
        inside.setdefault(own, [])
        inner = name.removeprefix(f"{own}.")
        if name != own and "." not in inner:
            inside[own].append(inner)
        others = {_top(other) for other in (*room.may, *room.lazily) if other in ROOMS and other not in _DOORS}
        graph.setdefault(own, set()).update(others - {own})
    return graph, inside


def within(parent: str) -> tuple[Graph, dict[str, list[str]]]:
    """Return the rooms inside `parent`, with the ones among them that they import."""
    names = [name for name in ROOMS if name.startswith(f"{parent}.")]
    graph = {
        name.removeprefix(f"{parent}."): {
            other.removeprefix(f"{parent}.") for other in (*ROOMS[name].may, *ROOMS[name].lazily) if other in names
        }
        for name in names
    }
    return graph, {name: [] for name in graph}


def _top(name: str) -> str:
    return "hallway" if name in HALLWAY else name.partition(".")[0]


def reduced(graph: Graph) -> Graph:
    """Return the graph without the arrows that follow from others."""

    def reach(name: str) -> set[str]:
        return set().union(*({other} | reach(other) for other in graph[name]))

    return {
        name: {other for other in others if not any(other in reach(between) for between in others)}
        for name, others in graph.items()
    }


def picture(graph: Graph, inside: dict[str, list[str]], places: Mapping[str, tuple[float, float]]) -> str:
    """Return an SVG: general rooms at the bottom, an arrow for each import that does not follow from others."""
    assert set(graph) == set(places), "every room has a place in the picture"
    if "hallway" in graph:
        inside = {**inside, "hallway": list(HALLWAY)}
    width = 2 * _MARGIN + (max(column for column, _ in places.values()) + 1) * (_CARD + _GAP) - _GAP
    boxes: dict[str, tuple[float, float, float]] = {}  # left, top, height
    top = float(_MARGIN)
    for at in range(int(max(row for _, row in places.values())) + 1):
        names = [name for name, (_, row) in places.items() if row == at]
        for name in names:
            boxes[name] = (_MARGIN + places[name][0] * (_CARD + _GAP), top, _height(inside[name]))
        top += max(_height(inside[name]) for name in names if name != _TALL) + _ROW_GAP
    height = top - _ROW_GAP + _MARGIN
    lines = [
        _arrow(boxes[name], boxes[other]) for name, others in reduced(graph).items() for other in sorted(others)
    ]
    cards = [_card(name, inside[name], boxes[name]) for name in graph]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            'font-family="system-ui, sans-serif" font-size="12">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
            f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
            *lines,
            *cards,
            "</svg>",
            "",
        ]
    )


def _height(names: list[str]) -> float:
    return 30.0 + _LINE * len(names) + (6 if names else 0)


def _arrow(upper: tuple[float, float, float], lower: tuple[float, float, float]) -> str:
    (left, top, height), (other, below, _) = upper, lower
    # An arrow to the side starts on that side of the card, which keeps several arrows apart.
    shift = 0.3 * _CARD * max(-1.0, min(1.0, (other - left) / (2 * (_CARD + _GAP))))
    start, end = left + _CARD / 2 + shift, other + _CARD / 2 - shift
    return (
        f'<line x1="{start:g}" y1="{top + height:g}" x2="{end:g}" y2="{below - 2:g}" stroke="#555" '
        'marker-end="url(#tip)"/>'
    )


def _card(name: str, inside: list[str], box: tuple[float, float, float]) -> str:
    left, top, height = box
    parts = [
        f'<rect x="{left:g}" y="{top:g}" width="{_CARD}" height="{height:g}" rx="6" fill="#f3f7fb" '
        'stroke="#0072B2"/>',
        f'<text x="{left + 12:g}" y="{top + 20:g}" font-weight="600">{escape(name)}</text>',
    ]
    parts += [
        f'<text x="{left + 12:g}" y="{top + 38 + _LINE * place:g}" fill="#444">{escape(each)}</text>'
        for place, each in enumerate(inside)
    ]
    return "".join(parts)


def table() -> str:
    """Return the table: one row per room, with its content and its permitted imports."""
    rows = ["| room | holds | may import | libraries |", "| --- | --- | --- | --- |"]
    for name, room in ROOMS.items():
        may = [f"`{other}`" for other in room.may]
        may += [f"`{other}` (lazily)" for other in room.lazily if other in ROOMS]
        packages = [*room.packages, *(f"{other} (lazily)" for other in room.lazily if other not in ROOMS)]
        forbidden = " Of the standard library, only pure modules." if room.standard is not None else ""
        rows.append(
            f"| `{name}` | {room.holds}{forbidden} | {', '.join(may) or '-'} | {', '.join(packages) or '-'} |"
        )
    return "\n".join(rows)


def page(text: str) -> str:
    """Return the page with a current table."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table()}\n{END}{after}"


def files() -> dict[Path, str]:
    """Return the content of each generated file."""
    return {
        DOCS / "images" / "rooms.svg": picture(*house(), HOUSE),
        DOCS / "images" / "rooms-live.svg": picture(*within("live"), LIVE),
        PAGE: page(PAGE.read_text(encoding="utf-8")),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
