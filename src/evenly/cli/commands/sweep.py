"""`evenly sweep`."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from evenly.cli import options, sweep_options
from evenly.cli.output import emit
from evenly.cli.sweep_inputs import SweepRequest, read_sweep
from evenly.cli.sweep_progress import sweep_progress

if TYPE_CHECKING:
    from evenly.sweeps import SweepResult

EXAMPLE = (
    "Example: evenly sweep --pools 500 --load 2.5,5.5,9.9 --alpha 0.5:0.99:0.01 --out alpha --plot alpha.png. "
    "Options take a value, a list (2.5,5.5), a range in steps (0.5:0.99:0.01) or one in ratios (10..10000/7); "
    "a semicolon separates sizes, schedules, service laws and arrivals."
)
_SOME_FAILED = 3


def command(
    policy: sweep_options.Policy = None,
    pools: sweep_options.Pools = None,
    sizes: sweep_options.Sizes = None,
    utility: sweep_options.Utility = None,
    load: sweep_options.Load = None,
    schedule: sweep_options.Schedule = None,
    threshold: sweep_options.Threshold = None,
    alpha: sweep_options.Alpha = None,
    sample_size: sweep_options.SampleSize = None,
    capacity: sweep_options.Capacity = None,
    initial_tasks: sweep_options.InitialTasks = None,
    service_rate: sweep_options.ServiceRate = None,
    service: sweep_options.Service = None,
    arrivals: sweep_options.Arrivals = None,
    delay: sweep_options.Delay = None,
    report_interval: sweep_options.ReportInterval = None,
    sticky: sweep_options.Sticky = None,
    sticky_margin: sweep_options.StickyMargin = None,
    horizon: sweep_options.Horizon = None,
    warmup: sweep_options.Warmup = None,
    replications: sweep_options.Replications = None,
    seed: sweep_options.Seed = None,
    batches: sweep_options.Batches = None,
    steady_state: options.SteadyState = None,
    scenario: options.ScenarioFile = None,
    zip: sweep_options.Zip = None,
    values: sweep_options.Values = None,
    until: sweep_options.Until = None,
    dry_run: sweep_options.DryRun = None,
    engine: sweep_options.Engine = None,
    workers: sweep_options.Workers = None,
    ray_address: sweep_options.RayAddress = None,
    fail_fast: sweep_options.FailFast = None,
    out: sweep_options.Out = None,
    plot: options.Plot = None,
    x: sweep_options.X = None,
    y: sweep_options.Y = None,
    value: sweep_options.Value = None,
    facet: sweep_options.Facet = None,
    json: options.Json = None,
) -> None:
    """Simulate a grid of scenarios, in parallel; a second run does only what is missing."""
    given = dict(locals())
    request = read_sweep(given)
    if request.dry_run:
        _print_estimate(request)
        return

    from evenly.cli.text.sweep import sweep_text
    from evenly.sweeps.run import run_plan

    with sweep_progress() as progress:
        result = run_plan(
            request.plan,
            request.out,
            make_engine=request.make_engine,
            fail_fast=request.fail_fast,
            progress=progress,
        )
    if request.plot:
        _draw(result, request.plot, request)
    emit(result.to_dict, lambda: typer.echo(sweep_text(result)), as_json=request.json, files=[request.plot])
    if result.status is not None and result.status.failed:
        raise typer.Exit(_SOME_FAILED)


def _draw(result: SweepResult, path: Path, request: SweepRequest) -> None:
    from evenly.plots.style import saved_figure
    from evenly.sweeps.picture import read_picture

    with saved_figure(path, *read_picture(result.manifest, **request.picture).size) as figure:
        result.plot_panels(**request.picture, figure=figure)


def _print_estimate(request: SweepRequest) -> None:
    from evenly.sweeps.estimate import estimate
    from evenly.sweeps.folder import known_points
    from evenly.sweeps.schedule import count_missing

    missing = count_missing(request.plan, known_points(request.out, request.plan))
    with sweep_progress():
        found = estimate(request.plan, missing, request.make_engine.expected_workers)
    typer.echo(json_.dumps(found.to_dict()) if request.json else found.text())
