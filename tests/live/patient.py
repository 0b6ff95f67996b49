"""`evenly` that does not mistake a busy machine for a dead peer.

    patient.py gateway OPTIONS    its Envoy waits longer for picker and pools
    patient.py picker OPTIONS     waits longer for the counts of other pickers, before the first pick

Tests use it if they count which pool gets how many sessions. It is `evenly` in everything else.
"""

from __future__ import annotations

from typing import Any

from evenly.__main__ import run
from evenly.live.gateway import supervisor
from evenly.live.picker import sharing

_LONG_S = 60.0
_LONG = f"{_LONG_S:g}s"


def wait_longer(config: dict[str, Any]) -> None:
    """Raise every timeout of an Envoy that a busy machine can exceed while nothing is wrong."""
    [listener] = config["static_resources"]["listeners"]
    filters = listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
    [picks] = [each for each in filters if each["name"] == "picker"]
    picks["typed_config"]["extension_config"]["typed_config"]["message_timeout"] = _LONG
    for cluster in config["static_resources"]["clusters"]:
        cluster["connect_timeout"] = _LONG
        for check in cluster["health_checks"]:
            check["timeout"] = _LONG


if __name__ == "__main__":
    usual: Any = vars(supervisor)["envoy_config"]

    def patient(**options: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the usual config with longer timeouts."""
        config: dict[str, Any] = usual(**options)
        wait_longer(config)
        return config

    vars(supervisor)["envoy_config"] = patient
    vars(sharing)["_WAIT_S"] = _LONG_S
    run()
