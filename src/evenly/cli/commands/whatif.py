"""`evenly whatif`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenly.cli import options, whatif_options
from evenly.cli.inputs import import_from_here, split_names
from evenly.cli.output import emit, plot_path, wants_json
from evenly.cli.progress import progress_bar
from evenly.errors import InputError
from evenly.files import check_writable
from evenly.inputs import shown
from evenly.policies import is_own

EXAMPLE = "Example: evenly whatif access.log --servers 20 --limit 12 --html report.html"
_HTML = (".html", ".htm")


def command(
    log: whatif_options.Log,
    format: whatif_options.Format = None,
    unit: whatif_options.Unit = None,
    columns: whatif_options.Columns = None,
    warmup: whatif_options.Warmup = None,
    until: whatif_options.Until = None,
    servers: whatif_options.Servers = None,
    policies: whatif_options.Policies = None,
    alpha: whatif_options.Alpha = None,
    threshold: whatif_options.Threshold = None,
    sample_size: whatif_options.SampleSize = None,
    report_interval: whatif_options.ReportInterval = None,
    capacity: whatif_options.Capacity = None,
    delay: whatif_options.Delay = None,
    limit: whatif_options.Limit = None,
    seed: options.Seed = None,
    html: whatif_options.Html = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Replay the sessions of a log under several policies: what would have happened, and on how many servers."""
    given = {name: value for name, value in locals().items() if value is not None}
    picture, report, as_json = plot_path(given), _report_path(given.get("html")), wants_json(given)
    arguments = {name: value for name, value in given.items() if name not in ("log", "plot", "html", "json")}
    if policies is not None:
        arguments["policies"] = _listed(policies)
    if columns is not None:
        arguments["columns"] = _pairs(columns)

    from evenly.cli.text.whatif import print_whatif
    from evenly.whatif import replay_log

    with progress_bar("replaying") as progress:
        result = replay_log(log, **arguments, progress=progress)
    if picture:
        from evenly.plots.style import saved_figure

        with saved_figure(picture, 8.0, 6.4) as figure:
            result.plot_panels(figure=figure)
    if report:
        from evenly.whatif.report import write_report

        write_report(result, report)
    emit(result.to_dict, lambda: print_whatif(result), as_json=as_json, files=[picture, report])


def _listed(policies: str) -> list[str]:
    """Return the names of the policies; one's own are looked for in the current folder."""
    names = split_names(policies)
    if any(is_own(name) for name in names):
        import_from_here()
    return names


def _report_path(path: Path | None) -> Path | None:
    """Return the path of the report. Fails before the work if it cannot be written."""
    if path is None:
        return None
    if path.suffix not in _HTML:
        raise InputError(f"html must name a file that ends in {' or '.join(_HTML)}, not {shown(str(path))}.")
    check_writable(path)
    return path


def _pairs(text: str) -> Mapping[str, Any]:
    """Return the columns by their roles."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(role.strip() and sign and name.strip() for role, sign, name in pairs):
        raise InputError(f"columns must be written ROLE=NAME, such as start=begin,server=host, not {shown(text)}.")
    return {role.strip(): name.strip() for role, _, name in pairs}
