"""What a run records besides its counts and the time at each threshold and maximum."""

from __future__ import annotations

from enum import IntFlag

from evenly.sim.kernels import ledger


class Records(IntFlag):
    """Records that a run can leave out, which makes the aggregate kernel faster. All else keeps its bits."""

    SPREAD = ledger.OMIT_SPREAD
    IMBALANCE = ledger.OMIT_IMBALANCE
    LEVELS = ledger.OMIT_LEVELS  # time integrals of the number of pools with at least i tasks


ALL = Records.SPREAD | Records.IMBALANCE | Records.LEVELS
