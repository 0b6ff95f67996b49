"""Logs for tests of readers: lines as the real programs wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

Write = Callable[..., Path]

ENVOY = """\
[2026-11-18T00:49:24.342Z] "GET /ws HTTP/1.1" 0 - 0 0 0 - "-" "Python/3.11 websockets/17.4" "040498e8-bb25" "127.0.0.1:32901" "-"
[2026-11-18T00:49:24.342Z] "GET /ws HTTP/1.1" 101 - 0 17 1003 - "-" "Python/3.11 websockets/17.4" "040498e8-bb25" "127.0.0.1:32901" "127.0.0.1:35451"
[2026-11-18T00:49:24.342Z] "GET /ws HTTP/1.1" 101 UC 8 19 2302 - "-" "Python/3.11 websockets/17.4" "040498e8-bb25" "127.0.0.1:32901" "127.0.0.1:35451"
[2026-11-18T00:49:27.643Z] "GET /none HTTP/1.1" 404 - 0 0 0 - "-" "-" "e4a06902-1c2b" "127.0.0.1:32901" "-"
[2026-11-18T00:49:27.644Z] "GET /?seconds=0.3 HTTP/1.1" 200 - 0 15 301 300 "-" "-" "eadcb0cc-c765" "127.0.0.1:32901" "127.0.0.1:35452"
"""  # noqa: E501
ENVOY_TCP = '[2026-11-18T00:49:33.383Z] "- - -" 0 - 275 148 603 - "-" "-" "-" "-" "127.0.0.1:35451"\n'
ENVOY_JSON = """\
{"access_log_type":"DownstreamStart","duration":0,"start_time":"2026-11-18T00:49:27.950Z","stream_id":"0c57","upstream_host":null}
{"access_log_type":"DownstreamPeriodic","duration":1002,"start_time":"2026-11-18T00:49:27.950Z","stream_id":"0c57","upstream_host":"127.0.0.1:35451"}
{"access_log_type":"DownstreamEnd","duration":2302,"start_time":"2026-11-18T00:49:27.950Z","stream_id":"0c57","upstream_host":"127.0.0.1:35451"}
{"access_log_type":"DownstreamStart","duration":0,"start_time":"2026-11-18T00:49:31.255Z","stream_id":"845c","upstream_host":null}
{"access_log_type":"DownstreamEnd","duration":0,"start_time":"2026-11-18T00:49:31.255Z","stream_id":"845c","upstream_host":null}
"""
HAPROXY = """\
127.0.0.1:38488 [18/Nov/2026:00:49:31.557] web chat/s1 0/0/0/0/605 101 151 - - ---- 1/1/0/0/0 0/0 "GET /ws HTTP/1.1"
127.0.0.1:38490 [18/Nov/2026:00:49:32.163] web web/<NOSRV> 0/-1/-1/-1/0 404 56 - - LR-- 1/1/0/0/0 0/0 "GET /none HTTP/1.1"
Nov 18 00:49:33 lb1 haproxy[123]: 127.0.0.1:47272 [18/Nov/2026:00:49:33.987] raw bytes/s2 1/0/602 148 -- 1/1/0/0/0 0/0
127.0.0.1:38518 [18/Nov/2026:00:49:34.890] web web/<NOSRV> -1/-1/-1/-1/0 400 0 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>"
127.0.0.1:45638 [18/Nov/2026:00:51:45.371] early chat/s1 0/0/0/0/+0 101 +149 - - ---- 2/1/1/1/0 0/0 "GET /session HTTP/1.1"
127.0.0.1:45639 [18/Nov/2026:00:51:46.371] web chat/s1 0/0/0/0/-1 101 0 - - ---- 2/1/1/1/0 0/0 "GET /session HTTP/1.1"
Proxy web started.
"""  # noqa: E501
NGINX = """\
127.0.0.1 [18/Nov/2026:00:49:33 +0000] "GET /ws HTTP/1.1" 101 msec=1794962973.071 request_time=0.606 upstream_addr="127.0.0.1:35451"
127.0.0.1 [18/Nov/2026:00:49:33 +0000] "GET /none HTTP/1.1" 404 msec=1794962973.075 request_time=0.000 upstream_addr="-"
127.0.0.1 [18/Nov/2026:00:49:33 +0000] "GET / HTTP/1.1" 200 msec=1794962973.383 request_time=0.308 upstream_addr="127.0.0.1:1, 127.0.0.1:35452"
"""  # noqa: E501
NGINX_JSON = """\
{"msec":1794962973.071,"request_time":0.606,"upstream_addr":"127.0.0.1:35451"}
{"msec":"1794962973.383","request_time":"0.308","upstream_addr":"127.0.0.1:35451"}
{"msec":1794962973.075,"request_time":0.000,"upstream_addr":""}
"""
COMBINED = '127.0.0.1 - - [18/Nov/2026:00:49:33 +0000] "GET /ws HTTP/1.1" 101 19 "-" "Python/3.11"\n'
INGRESS = """\
10.0.0.9 - - [18/Nov/2026:01:49:33 +0100] "GET /ws HTTP/1.1" 101 19 "-" "Mozilla/5.0" 512 0.606 [web-80] [] 10.0.0.7:8080 19 0.605 101 3f2a
10.0.0.9 - - [18/Nov/2026:01:49:33 +0100] "GET /none HTTP/1.1" 404 0 "-" "Mozilla/5.0" 99 0.000 [] [] - - - - 3f2b
10.0.0.9 - - [18/Nov/2026:01:49:35 +0100] "GET / HTTP/1.1" 200 5 "-" "Mozilla/5.0" 99 2.308 [web-80] [] 10.0.0.1:1, 10.0.0.8:8080 0, 5 2.001, 0.306 502, 200 3f2c
"""  # noqa: E501  (the stock format of ingress-nginx)
AZURE = """\
app,func,end_timestamp,duration
734272c0,313c03f5,5160.142570018768,0.134
17c37a0f,c9f8e30e,5.5,42.356
"""
BURSTGPT = """\
Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
19440110.0,1722ac82-0a46-4bf0-aa08-89794e7a2b3f,43,GPT-4,906,446,1352,Conversation log
19440161.0,d5983bf9-4b48-497b-892b-a58995247443,2,ChatGPT,36,29,65,Conversation log
"""


def lines(*rows: Iterable[object]) -> str:
    """Return CSV."""
    return "".join(",".join(str(value) for value in row) + "\n" for row in rows)
