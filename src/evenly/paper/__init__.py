"""The paper, reproduced: experiments, figures with parameters, and a report with a verdict on each claim.

`evenly.paper.figures` is loaded when first used, to keep importing this package quick.
"""

from evenly.lazy import front_door

__getattr__, __dir__, __all__ = front_door(__name__, {}, ("figures",))
