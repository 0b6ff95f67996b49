"""`evenly compare`."""

from __future__ import annotations

from evenly.cli import options
from evenly.cli.inputs import read_request
from evenly.cli.output import deliver
from evenly.cli.progress import progress_bar

EXAMPLE = (
    "Example: evenly compare --pools 500 --load 10.5 --alpha 0.96 --horizon 220 --warmup 20 --plot figure5.png"
)
_POLICIES = "random,power-of-d,jsq,threshold"


def command(
    policies: options.Policies = None,
    pools: options.Pools = None,
    load: options.Load = None,
    schedule: options.Schedule = None,
    threshold: options.Threshold = None,
    alpha: options.Alpha = None,
    choices: options.Choices = None,
    capacity: options.Capacity = None,
    initial: options.Initial = None,
    service_rate: options.ServiceRate = None,
    horizon: options.Horizon = None,
    warmup: options.Warmup = None,
    replications: options.Replications = None,
    seed: options.Seed = None,
    batches: options.Batches = None,
    steady_state: options.SteadyState = None,
    scenario: options.ScenarioFile = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Simulate several policies on the same arrivals and departures, side by side."""
    request = read_request(locals(), _POLICIES)

    from evenly.cli.text.simulation import print_comparison
    from evenly.sim import compare, with_policies

    scenarios = with_policies(request.scenario, request.policies)
    with progress_bar("comparing") as progress:
        results = compare(scenarios, **request.run, progress=progress)
    if request.plot:
        from evenly.plots import shares

        shares.draw(results, request.plot)
    deliver(
        {"policies": [result.to_dict() for result in results]},
        lambda: print_comparison(results),
        as_json=request.json,
        files=[request.plot],
    )
