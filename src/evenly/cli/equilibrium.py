"""`evenly equilibrium`."""

from __future__ import annotations

from typing import Any

import typer

from evenly.cli import options
from evenly.cli.delivery import deliver, wanted_picture, wants_json
from evenly.cli.request import read_values
from evenly.errors import InputError

EXAMPLE = "Example: evenly equilibrium --load 5.5 --threshold 7"


def command(
    policy: options.ExactPolicy = None,
    load: options.Load = None,
    threshold: options.FixedThreshold = None,
    kind: options.Kind = None,
    choices: options.Choices = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Predict where very many pools settle: under a fixed threshold, or under another policy."""
    values = read_values(locals())
    picture = wanted_picture(values)

    from evenly.cli import show

    facts = _facts(values)
    if picture:
        from evenly.plots import equilibrium as equilibrium_plot

        equilibrium_plot.draw(facts, picture)
    deliver(facts, lambda: typer.echo(show.equilibrium_text(facts)), as_json=wants_json(values), files=[picture])


def _facts(values: dict[str, Any]) -> dict[str, Any]:
    """The equilibrium of the policy asked for; under any policy the same keys."""
    from evenly.theory.balance import exactly
    from evenly.theory.equilibrium import equilibrium
    from evenly.theory.peers import PEERS, peer_fixed_point

    policy = values.get("policy", "threshold")
    needed = ("load", "threshold") if policy == "threshold" else ("load",)
    if policy not in ("threshold", *PEERS):
        raise InputError(f"policy must be one of threshold, {', '.join(PEERS)} here, not {policy}.")
    if any(name not in values for name in needed):
        options_ = " and ".join(f"--{name}" for name in needed)
        raise InputError(f"The equilibrium under policy {policy} needs {options_}.")
    if policy == "threshold":
        if "choices" in values:
            raise InputError("--choices is for policy power-of-d, not threshold.")
        found = equilibrium(values["load"], values["threshold"], values.get("kind"))
        return {"policy": policy, "choices": None, **found.to_dict()}
    for name in ("threshold", "kind"):
        if name in values:
            raise InputError(f"--{name} is for policy threshold, not {policy}.")
    occupancy = peer_fixed_point(policy, values["load"], values.get("choices"))
    return {
        "policy": policy,
        "choices": values.get("choices", 2) if policy == "power-of-d" else None,
        "load": values["load"],
        "threshold": None,
        "kind": None,
        "theta": None,
        "mean_tasks": float(occupancy[1:].sum()),
        "pools_with_exactly": exactly(occupancy).tolist(),
        "occupancy": occupancy.tolist(),
    }
