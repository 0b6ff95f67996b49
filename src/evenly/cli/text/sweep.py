"""The result of a sweep as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenly.sweeps import SweepResult

_ERRORS = 3


def sweep_text(result: SweepResult) -> str:
    """Return what was done, what failed, and where the rows are."""
    status = result.status
    assert status is not None
    device = f" ({status.device_seconds:.2f} s on the device)" if status.device_seconds else ""
    lines = [
        f"{status.points:,} points: {status.done:,} run in {result.seconds:.1f} s{device}, "
        f"{status.reused:,} reused, {status.failed:,} failed"
    ]
    if status.failed:
        errors = list(dict.fromkeys(result.errors))
        lines += [f"  failed: {error}" for error in errors[:_ERRORS]]
        lines += [f"  and {len(errors) - _ERRORS} other errors"] if len(errors) > _ERRORS else []
    if missing := result.without_intervals:
        lines.append(
            f"without intervals: {missing:,} points, whose runs are short or saw too few events; "
            "--replications or a longer --horizon gives them"
        )
    return "\n".join([*lines, f"rows in {result.folder}"])
