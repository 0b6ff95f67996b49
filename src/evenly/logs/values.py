"""Texts of many lines to arrays of seconds. What cannot be read becomes NaN: a bad line costs no other."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from datetime import UTC, datetime
from math import nan

import numpy as np

from evenly.logs.batch import Floats

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # how many make a second
_LARGEST = 1e300
_MONTHS = {name: month for month, name in enumerate(calendar.month_abbr) if name}  # as in C: Jan, Feb, ...


def numbers(texts: Sequence[str | float]) -> Floats:
    """Return the numbers that the texts spell."""
    try:
        found = np.fromiter(map(float, texts), np.float64, len(texts))
    except (ValueError, TypeError, OverflowError):
        found = np.fromiter(map(_number, texts), np.float64, len(texts))
    return within_reach(found)


def within_reach(values: Floats) -> Floats:
    """Return the values with NaN for those whose differences could overflow, infinity among them."""
    return np.where(np.abs(values) < _LARGEST, values, nan)


def _number(text: object) -> float:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return nan
    try:
        return float(text)
    except (ValueError, OverflowError):
        return nan


def is_iso(text: str) -> bool:
    """Return True for text that is meant as an ISO 8601 date and time: 2026-03-01T12:00:00Z."""
    return len(text) >= 10 and text[4] == "-" == text[7] and text[:4].isdigit()


def iso_times(texts: Sequence[str]) -> tuple[Floats, bool]:
    """Return seconds since 1970 UTC, and whether every time names its offset; one that does not is read as UTC."""
    try:
        moments = list(map(datetime.fromisoformat, texts))
        zoned = all(moment.tzinfo is not None for moment in moments)
        if zoned:
            return np.fromiter((moment.timestamp() for moment in moments), np.float64, len(texts)), True
    except (ValueError, TypeError, OverflowError):
        zoned = True
    seconds = []
    for text in texts:
        moment = _iso_moment(text)
        if moment is None:
            seconds.append(nan)
            continue
        zoned = zoned and moment.tzinfo is not None
        seconds.append((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp())
    return np.array(seconds), zoned


def _iso_moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def haproxy_times(texts: Sequence[str]) -> Floats:
    """Return seconds since 1970 of dates like 06/Feb/2009:12:14:14.655, which name no offset, as if in UTC."""
    minutes: dict[str, float] = {}  # a log has few minutes and many lines
    starts = []
    for text in texts:
        minute = text[:17]
        base = minutes.get(minute)
        if base is None:
            base = minutes[minute] = _minute(minute)
        starts.append(base)
    return np.array(starts) + numbers([text[18:] for text in texts])


def clf_times(texts: Sequence[str]) -> Floats:
    """Return seconds since 1970 of dates like 06/Feb/2009:12:14:14 +0100, as nginx and Apache write them."""
    known: dict[str, float] = {}  # many lines have the second of another one
    for text in texts:
        if text not in known:
            known[text] = _clf_time(text)
    return np.array([known[text] for text in texts], np.float64)


def _clf_time(text: str) -> float:
    try:
        offset = 3600 * int(text[22:24]) + 60 * int(text[24:26])
        return _minute(text[:17]) + int(text[18:20]) - (offset if text[21] == "+" else -offset)
    except (ValueError, IndexError):
        return nan


def _minute(text: str) -> float:
    """Return seconds since 1970 of a minute like 06/Feb/2009:12:14."""
    try:
        moment = datetime(
            int(text[7:11]), _MONTHS[text[3:6]], int(text[:2]), int(text[12:14]), int(text[15:17]), tzinfo=UTC
        )
    except (KeyError, ValueError):
        return nan
    return moment.timestamp()
