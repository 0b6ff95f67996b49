"""`evenly compare`."""

from __future__ import annotations

from evenly.cli import options
from evenly.cli.inputs import read_request
from evenly.cli.output import emit, foreign_output_apart
from evenly.cli.progress import progress_bar
from evenly.policies import COMPARED, COMPARED_SIZED

EXAMPLE = (
    "Example: evenly compare --pools 500 --load 10.5 --alpha 0.96 --horizon 220 --warmup 20 --plot figure5.png"
)


def command(
    policies: options.Policies = None,
    pools: options.Pools = None,
    sizes: options.Sizes = None,
    utility: options.Utility = None,
    load: options.Load = None,
    schedule: options.Schedule = None,
    threshold: options.Threshold = None,
    alpha: options.Alpha = None,
    sample_size: options.SampleSize = None,
    capacity: options.Capacity = None,
    initial_tasks: options.InitialTasks = None,
    service_rate: options.ServiceRate = None,
    service: options.Service = None,
    arrivals: options.Arrivals = None,
    delay: options.Delay = None,
    report_interval: options.ReportInterval = None,
    sticky: options.Sticky = None,
    sticky_margin: options.StickyMargin = None,
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
    given = dict(locals())
    request = read_request(given, ",".join(COMPARED), ",".join(COMPARED_SIZED))

    from evenly.cli.text.simulation import print_comparison
    from evenly.sim import compare

    with foreign_output_apart(), progress_bar("comparing") as progress:
        comparison = compare(request.scenarios, **request.run, progress=progress)
    if request.plot:
        from evenly.plots.style import saved_figure

        with saved_figure(request.plot, 8.0, 5.2) as figure:
            comparison.plot_panels(figure=figure)
    emit(
        comparison.to_dict,
        lambda: print_comparison(comparison),
        as_json=request.json,
        files=[request.plot],
    )
