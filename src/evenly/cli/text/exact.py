"""`evenly exact` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenly.cli.text.common import histogram
from evenly.cli.text.rows import row_lines

if TYPE_CHECKING:
    from evenly.theory.exact import ExactLaw


def exact_text(law: ExactLaw) -> str:
    """Return the text that `evenly exact` prints."""
    return "\n".join(
        [
            f"{law.name}: {law.pools:,} pools, load {law.load:g}, exact from {law.states:,} states",
            "",
            *row_lines(law),
            "",
            *histogram(law.pools_with_exactly.tolist(), "pools"),
        ]
    )
