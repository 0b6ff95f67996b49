"""`evenly simulate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from evenly.cli import options
from evenly.cli.inputs import read_request
from evenly.cli.output import emit, foreign_output_apart
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

if TYPE_CHECKING:
    from evenly.sim import Result, Scenario

EXAMPLE = "Example: evenly simulate --pools 500 --load 5.5 --alpha 0.93 --horizon 100 --plot settling.png"
_POINTS = 801  # snapshots for a picture or a file


def command(
    policy: options.Policy = None,
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
    save: options.Save = None,
    record: options.Record = None,
    json: options.Json = None,
) -> None:
    """Simulate one policy exactly: tasks per pool, threshold, messages."""
    given = dict(locals())
    request = read_request(given)

    from evenly.cli.text.simulation import simulation_text
    from evenly.sim import simulate
    from evenly.sim.run import MAX_CELLS

    points = min(_POINTS, max(2, MAX_CELLS // request.scenarios[0].levels)) if request.plot or request.save else 0
    with foreign_output_apart(), progress_bar("simulating") as progress:
        if request.record:
            result = record_run(request.scenarios[0], request.run, request.record, points, progress)
        else:
            result = simulate(
                request.scenarios[0], **request.run, points=points, trajectories=1, progress=progress
            )
    if request.plot:
        from evenly.plots.style import saved_figure

        with saved_figure(request.plot, 8.0, 7.2) as figure:
            result.plot_panels(figure=figure)
    if request.save:
        result.save(request.save)
    emit(
        result.to_dict,
        lambda: typer.echo(simulation_text(result)),
        as_json=request.json,
        files=[request.plot, request.save, request.record],
    )


def record_run(
    scenario: Scenario, run: dict[str, Any], path: Path, points: int, progress: Callable[[float], None]
) -> Result:
    """Simulate one run, and write its sessions to a log."""
    from evenly.sim.recorded import simulate_recorded
    from evenly.whatif.record import save_sessions

    if run.get("replications", 1) != 1:
        raise InputError("--record writes the sessions of one run: leave out --replications.")
    for key in ("batches", "mean_holding_times"):
        if run.get(key):
            raise InputError(f"--record writes every session of one run, without intervals: leave out {key}.")
    result, sessions = simulate_recorded(scenario, seed=run.get("seed", 1), points=points, progress=progress)
    save_sessions(path, sessions)
    return result
