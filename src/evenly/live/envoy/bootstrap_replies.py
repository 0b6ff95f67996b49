"""Responses that Envoy sends itself, without a pool: they never wait for the picker.

`bootstrap.py` lists what must not change, and why.
"""

from __future__ import annotations

from evenly.live.envoy.bootstrap_clusters import EXTENSIONS, Json, typed

_MATCHER = "type.googleapis.com/envoy.type.matcher.v3"


def except_local_replies(picker: Json) -> Json:
    """Wrap the picker's filter so that it does not see the responses of Envoy itself (400, 431, 503 and so on).

    After a malformed request Envoy closes the stream in the same turn in which it sends the 400. A filter that
    holds the response to ask the picker first would lose it, and the client would get nothing.
    """
    local = typed("local-reply", f"{_MATCHER}.HttpResponseLocalReplyMatchInput")  # unknown until the response
    skip = typed("skip", f"{EXTENSIONS}.filters.common.matcher.action.v3.SkipFilter")
    is_local = {"single_predicate": {"input": local, "value_match": {"exact": "true"}}}
    return typed(
        picker["name"],
        f"{EXTENSIONS}.common.matching.v3.ExtensionWithMatcher",
        extension_config=picker,
        xds_matcher={"matcher_list": {"matchers": [{"predicate": is_local, "on_match": {"action": skip}}]}},
    )


def answer_to_ping() -> Json:
    """Answer `OPTIONS *`, the ping of HTTP (RFC 9110), with 200.

    Envoy cannot send it to a pool: it routes paths that begin with a slash only, and responds 404 to all others.
    """
    asked = [
        {"header_filter": {"header": {"name": name, "string_match": {"exact": value}}}}
        for name, value in ((":method", "OPTIONS"), (":path", "*"))
    ]
    not_found = {"comparison": {"op": "EQ", "value": {"default_value": 404, "runtime_key": "unused"}}}
    return {"filter": {"and_filter": {"filters": [*asked, {"status_code_filter": not_found}]}}, "status_code": 200}
