"""The rule that learns the threshold, and nothing else.

It sees token counts and returns up, down or stay. The dispatcher decides when to apply it, and what a change of
the threshold entails.
"""

from decimal import Decimal
from fractions import Fraction

from evenly.core.checks import MAX_COUNT
from evenly.errors import InputError
from evenly.inputs import shown, whole_number

_MAX_DECIMALS = 50  # a short exponent such as 1e-999999 makes a fraction that fills the memory


def _exact(alpha: float | str | Decimal) -> Fraction:
    """Return the decimal that the user wrote, exactly: 0.57 is 57/100, not the nearest float."""
    try:
        value = Decimal(str(alpha))
        written = shown(alpha).strip("'")  # a number given as text is allowed, so it is shown as a number
    except Exception:  # not a number, an integer too long to print, or whatever a foreign __str__ raises
        value, written = Decimal("nan"), shown(alpha)
    if not value.is_finite() or not 0 < value < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, not {written}.")
    if -int(value.as_tuple().exponent) > _MAX_DECIMALS:
        raise InputError(f"alpha must have at most {_MAX_DECIMALS} decimal places, not {written}.")
    return Fraction(value)


class LearningRule:
    """A rule that moves the threshold by at most one at an arrival, from the token counts right before it.

    Up if at least all pools but one have more than `threshold` tasks; down if at most a fraction `alpha` of
    the pools have `threshold` tasks or more.

    Paper: Sec. 4.1; both at once cancel, as in the equation of App. B.1.
    """

    __slots__ = ("_alpha", "_denominator", "_numerator")

    def __init__(self, alpha: float | str | Decimal) -> None:
        self._alpha = _exact(alpha)
        self._numerator, self._denominator = self._alpha.as_integer_ratio()  # read at every arrival

    @property
    def alpha(self) -> Fraction:
        """The fraction, exactly as written."""
        return self._alpha

    def fall_at(self, pools: int) -> int:
        """Return the largest number of pools that is at most the fraction alpha of all, in integers."""
        return self._numerator * whole_number("pools", pools, 0, MAX_COUNT) // self._denominator

    def step(self, pools: int, green: int, yellow: int) -> int:
        """Return +1, 0 or -1 from the number of pools and of the green and yellow tokens held."""
        if not type(pools) is type(green) is type(yellow) is int or not 0 <= green <= yellow <= pools <= MAX_COUNT:
            pools = whole_number("pools", pools, 0, MAX_COUNT)
            yellow = whole_number("yellow", yellow, 0, pools, why="the pools")
            green = whole_number("green", green, 0, yellow, why="the yellow tokens")
        rise = yellow <= 1
        fall = (pools - green) * self._denominator <= pools * self._numerator
        return int(rise) - int(fall)

    def __repr__(self) -> str:
        return f"LearningRule({float(self._alpha)})"
