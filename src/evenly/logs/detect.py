"""Tell the format of a log from its first lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.logs.collect import shortened
from evenly.logs.csv_lines import AzureFunctions, BurstGpt, CsvParser, Recorded, split_fields
from evenly.logs.envoy import EnvoyText
from evenly.logs.haproxy import HAProxy
from evenly.logs.json_lines import EnvoyJson, NginxJson, decoded
from evenly.logs.nginx import NginxCombined, NginxText
from evenly.logs.parser import Parser, PatternParser
from evenly.logs.record import MARK
from evenly.logs.values import UNITS

PARQUET = "parquet"
FORMATS = {
    "csv": "a table with the columns start and duration or end",
    "parquet": "the same as Parquet",
    "envoy": "Envoy's default access log",
    "envoy-json": "Envoy's access log in JSON",
    "haproxy": "HAProxy's httplog or tcplog",
    "nginx": "nginx with msec, request_time and upstream_addr",
    "nginx-combined": "nginx's combined format with the request time added",
    "nginx-json": "the same as JSON",
    "evenly": "what evenly --record writes",
    "azure-functions": "Azure Functions Invocation Trace 2021",
    "burstgpt": "BurstGPT",
}
_SAMPLE = 50  # lines
_TEXTS: tuple[type[PatternParser], ...] = (EnvoyText, HAProxy, NginxText, NginxCombined)
_JSONS = (EnvoyJson, NginxJson)
_PLAIN: tuple[type[Parser], ...] = (*_TEXTS, *_JSONS)


def make_parser(
    format: str, file: str, *, unit: str | None = None, columns: Mapping[str, str] | None = None
) -> Parser:
    """Return a parser of the format. Only tables of the user's own take a unit and columns."""
    if format == CsvParser.format:
        return CsvParser(file, unit=unit, columns=columns)
    if unit is not None or columns:
        raise InputError(f"A unit and columns can be given for CSV and Parquet, not for {format}.")
    with_file: dict[str, Callable[[str], Parser]] = {
        kind.format: kind for kind in (AzureFunctions, BurstGpt, Recorded)
    }
    if format in with_file:
        return with_file[format](file)
    return next(kind for kind in _PLAIN if kind.format == format)()


def check_format(format: str) -> str:
    """Return the name of a format that we know."""
    if format not in FORMATS:
        raise InputError(f"The format must be one of {', '.join(FORMATS)}, not {shown(format)}.")
    return format


def detect(texts: list[str], file: str, *, columns: Mapping[str, str] | None = None) -> str:
    """Return the format that these first lines of the file have, or raise InputError with what to do."""
    lines = [text for text in texts if text.strip()][:_SAMPLE]
    found = _detect(lines, columns)
    if found is not None:
        return found
    if any("\0" in line for line in lines):
        raise InputError(f"Cannot read {file}: it is not text.")
    if _json_lines(lines):
        raise InputError(
            f"Cannot tell the format of {file}: its JSON needs the keys start_time and duration, as of Envoy, or "
            f"request_time and one of msec, time_iso8601 and time_local, as of nginx."
        )
    raise InputError(
        f"Cannot tell the format of {file} from its first line, {shown(shortened(lines[0]))}: "
        f"give --format with one of {', '.join(FORMATS)}."
    )


def _detect(lines: list[str], columns: Mapping[str, str] | None) -> str | None:
    first = lines[0].lstrip("\ufeff")
    if first.startswith(MARK.rstrip("0123456789")):
        return Recorded.format
    for one in _json_lines(lines):
        for json_kind in _JSONS:
            if not json_kind.missing(one):
                return json_kind.format
    for kind in _TEXTS:
        if any((kind.sign or kind.pattern).search(line) for line in lines):
            return kind.format
    header = next((line for line in lines if not line.startswith("#")), "")
    return _detect_table([name.strip() for name in split_fields(header.lstrip("\ufeff"))], columns)


def _json_lines(lines: list[str]) -> list[dict[str, Any]]:
    """Return the lines that are JSON objects."""
    return [one for one in decoded([line for line in lines if line.startswith("{")]) if isinstance(one, dict)]


def _detect_table(names: list[str], columns: Mapping[str, str] | None) -> str | None:
    if {"app", "func", "end_timestamp", "duration"} <= set(names):
        return AzureFunctions.format
    if {"Timestamp", "Model", "Log Type"} <= set(names):
        return BurstGpt.format
    known = {f"{role}{unit}" for role in ("start", "end", "duration") for unit in ("", *(f"_{u}" for u in UNITS))}
    plain = {name.lower() for name in names}
    named = set((columns or {}).values())
    return CsvParser.format if len(names) > 1 and (plain & known or named & set(names)) else None
