from evenly.whatif.outcome import Outcome as Outcome
from evenly.whatif.result import WhatIf as WhatIf
from evenly.whatif.run import replay_log as replay_log
from evenly.whatif.sizing import Sizing as Sizing
from evenly.whatif.window import Window as Window

__all__: list[str]
