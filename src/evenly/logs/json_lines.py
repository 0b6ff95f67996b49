"""Access logs with one JSON object per line: Envoy's `json_format`, and nginx's `log_format ... escape=json`."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from math import nan
from typing import Any, ClassVar

import numpy as np

from evenly.logs.batch import Batch, Floats, empty_batch, places
from evenly.logs.envoy import NONE, stream_keys
from evenly.logs.nginx import last_upstream
from evenly.logs.parser import Parser
from evenly.logs.values import clf_times, iso_times, numbers

_MS = 1e3
Objects = list[dict[str, Any]]


class JsonParser(Parser):
    """A format of JSON objects with certain keys."""

    keys: ClassVar[tuple[tuple[str, ...], ...]]  # every line has one of each tuple

    def parse(self, texts: list[str]) -> Batch:
        """Return the sessions of the lines that are objects with the keys."""
        objects = decoded(texts)
        faults = [self._fault(one) for one in objects]
        bad = [(at, fault) for at, fault in enumerate(faults) if fault and texts[at].strip()]
        found = [at for at, fault in enumerate(faults) if not fault]
        if not found:
            return empty_batch(bad)
        batch = self.convert([objects[at] for at in found])
        batch.where, batch.bad = places(found), bad
        return batch

    @classmethod
    def missing(cls, one: Mapping[str, Any]) -> str:
        """Return the keys that an object lacks, as in "msec, time_iso8601 or time_local"; empty if none."""
        for either in cls.keys:
            for key in either:  # any() takes five times as long, and every line comes here
                if key in one:
                    break
            else:
                return f"{', '.join(either[:-1])} or {either[-1]}" if len(either) > 1 else either[0]
        return ""

    def _fault(self, one: object) -> str:
        if not isinstance(one, dict):
            return "it is not JSON" if one is None else "it is not a JSON object"
        missing = self.missing(one)
        return f"it has no key {missing}" if missing else ""

    @abstractmethod
    def convert(self, objects: Objects) -> Batch:
        """Return the sessions of the objects, one each."""


class EnvoyJson(JsonParser):
    """Envoy's JSON, with the keys that its documentation uses: `start_time`, `duration`, `upstream_host`.

    Lines about the same stream are told by `stream_id`, else by `request_id`, `x_request_id` or `connection_id`.
    `access_log_type` tells which of them is the last.
    """

    format: ClassVar[str] = "envoy-json"
    title: ClassVar[str] = "Envoy's access log in JSON, with start_time and duration"
    keys: ClassVar[tuple[tuple[str, ...], ...]] = (("start_time",), ("duration",))
    names_unserved = True
    repeats = True
    _IDS = ("stream_id", "request_id", "x_request_id", "connection_id")

    def convert(self, objects: Objects) -> Batch:
        """Return the sessions."""
        times = [_text(each["start_time"]) for each in objects]
        starts, zoned = iso_times(times)
        self.utc_offset_known = self.utc_offset_known and zoned
        lasted = [each["duration"] for each in objects]
        return Batch(
            where=np.empty(0, np.intp),
            starts=starts,
            durations=numbers(["0" if each is None or each == NONE else each for each in lasted]) / _MS,
            servers=[_named(each.get("upstream_host")) for each in objects],
            keys=stream_keys(times, [self._id(each) for each in objects]),
            still_open=np.fromiter(map(_is_open, objects), np.bool_, len(objects)),
        )

    def _id(self, one: Mapping[str, Any]) -> str:
        for key in self._IDS:
            name = one.get(key)
            if isinstance(name, str | int) and name != NONE:
                return str(name)
        return ""


class NginxJson(JsonParser):
    """nginx's JSON, with the names of its variables as keys: `msec`, `request_time`, `upstream_addr`.

    Without `msec`, the time of the end is `time_iso8601` or `time_local`, in whole seconds.
    """

    format: ClassVar[str] = "nginx-json"
    title: ClassVar[str] = "an nginx log in JSON, with request_time and msec, time_iso8601 or time_local"
    keys: ClassVar[tuple[tuple[str, ...], ...]] = (("msec", "time_iso8601", "time_local"), ("request_time",))
    names_unserved = True
    server_field: ClassVar[str] = "$upstream_addr"

    def convert(self, objects: Objects) -> Batch:
        """Return the sessions. nginx writes the time of the end."""
        durations = numbers([each["request_time"] for each in objects])
        return Batch(
            where=np.empty(0, np.intp),
            starts=self._ends(objects) - durations,
            durations=durations,
            servers=[last_upstream(_named(each.get("upstream_addr"))) for each in objects],
        )

    def _ends(self, objects: Objects) -> Floats:
        ends = numbers([each.get("msec", nan) for each in objects])
        rough = [at for at, each in enumerate(objects) if "msec" not in each]
        if rough:
            iso, zoned = iso_times([_text(objects[at].get("time_iso8601")) for at in rough])
            self.utc_offset_known = self.utc_offset_known and zoned
            local = clf_times([_text(objects[at].get("time_local")) for at in rough])
            ends[rough] = np.where(np.isnan(iso), local, iso)
            self.whole_seconds = self.whole_seconds or bool(np.isfinite(ends[rough]).any())
        return ends


def decoded(texts: list[str]) -> list[Any]:
    """Return the values of the lines, None for what is not JSON.

    Decoding many lines as one array takes half the time of decoding each. If that fails, the halves are tried.
    """
    try:
        values = json.loads(f"[{','.join(texts)}]")
        if len(values) == len(texts):  # a line `1,2` would be two
            return list(values)
    except (ValueError, RecursionError):
        pass
    if len(texts) <= 1:
        return [None] * len(texts)
    middle = len(texts) // 2
    return decoded(texts[:middle]) + decoded(texts[middle:])


def _is_open(one: Mapping[str, Any]) -> bool:
    """Return True for a line that was written before its session ended."""
    kind = one.get("access_log_type")
    if isinstance(kind, str) and kind not in ("", NONE, "NotSet"):
        return not kind.endswith("End")
    return one["duration"] is None or one["duration"] == NONE


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _named(server: object) -> str:
    name = _text(server)
    return "" if name == NONE else name
