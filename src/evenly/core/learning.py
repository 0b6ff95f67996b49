"""The rule by which the dispatcher learns the threshold, and nothing but the rule.

It sees token counts and says up, down or stay. When it is asked, and what a change of the threshold entails,
is the dispatcher's business.
"""

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from evenly.errors import InputError

_MAX_DECIMALS = 50  # an exponent can be written in a few characters and yet make an endless fraction


def _exact(alpha: float | str | Decimal) -> Fraction:
    """Return the decimal that the user wrote, exactly: 0.57 is 57/100, not the float next to it."""
    try:
        value = Decimal(str(alpha))
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or not 0 < value < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, not {alpha}.")
    if -int(value.as_tuple().exponent) > _MAX_DECIMALS:
        raise InputError(f"alpha must have at most {_MAX_DECIMALS} decimal places, not {alpha}.")
    return Fraction(value)


class LearningRule:
    """Adjust the threshold by at most one at an arrival, from the token counts right before it.

    Up if at least all pools but one have more than `threshold` tasks; down if at most a fraction `alpha` of
    the pools have `threshold` tasks or more.

    Paper: Sec. 4.1; both at once cancel, as in the equation of App. B.1.
    """

    __slots__ = ("alpha",)

    def __init__(self, alpha: float | str | Decimal) -> None:
        self.alpha = _exact(alpha)

    def fall_at(self, pools: int) -> int:
        """Return the largest number of pools that is at most the fraction alpha of all, in integers."""
        return self.alpha.numerator * pools // self.alpha.denominator

    def step(self, pools: int, green: int, yellow: int) -> int:
        """Return +1, 0 or -1 from the number of pools and of the green and yellow tokens held."""
        rise = yellow <= 1
        fall = pools - green <= self.fall_at(pools)
        return int(rise) - int(fall)

    def __repr__(self) -> str:
        return f"LearningRule({float(self.alpha)})"
