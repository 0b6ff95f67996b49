"""The paper, reproduced: experiments, figures that take parameters, and a report with a verdict on each claim.

`evenly.paper.figures` loads when first used, so that importing this package is quick.
"""

from evenly.lazy import front_door

__getattr__, __dir__, __all__ = front_door(__name__, {}, ("figures",))
