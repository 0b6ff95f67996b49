"""Hostile values for options, and the files that some of them name."""

from __future__ import annotations

import os
from pathlib import Path

NUMBERS = (
    "0", "-0", "1", "-1", "2", "+3", "0.5", "-0.5", "7.25", "1e3", "1e5", "1e9", "1e18", "1e308", "1e400",
    "1e-9", "1e-308", "5e-324", "1e-400", "nan", "inf", "-inf", "2147483648", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "18446744073709551616", "9" * 60, "9" * 5000, "-" + "9" * 60,
    "0." + "9" * 60, "0." + "0" * 60 + "1", "1_000", "1,5", "0x10", "1/2", "\uff11\uff12", "1e", "--", "1 2",
)  # fmt: skip
TEXTS = (
    "", " ", "\n", "a", "é", "\N{COLLISION SYMBOL}", "\udcff\udcfe", "None", "true", "[1]", "%s%n", "{0}", "*",
    "-", "--json", "-h", "a" * 100_000, "\x1b[31m", "null", ",", ":", "=", "0:1", "\\",
)  # fmt: skip
PATHS = (
    "/dev/zero", "/dev/null", "/dev/full", "/dev/stdin", "/dev/urandom", "/proc/self/mem", "/", ".", "..", "~",
    "missing/out.png", "missing.toml", "out.png", "out.svg", "out.pdf", "out.npz", "out.gif", "folder.png",
    "folder.npz", "pipe", "pipe.toml", "loop.png", "loop.toml", "huge.toml", "binary.toml", "deep.toml",
    "long.toml", "empty.toml", "twice.toml", "types.toml", "/dev/full/out.png", "x" * 300 + ".png",
    "x" * 5000 + ".png",
    "\udcff.png", "/sys/out.png", "/proc/out.npz",
)  # fmt: skip
SCHEDULES = (
    "0:5.5,20:10,30:3", "0:2~1/2", "0:2~1/1e-300", "0:2~1/1e-9", "0:2~1/0", "0:2~3/1", "0:1e308", "0:1,0:2", "5:1",
    "0:nan", "0:-1", "0:1~nan/1", "0:2~1/inf", "0:0", "1:1,0:2", "0:1," * 3, "0:1~", "0:1/2", "~", "0:2~1/1e300",
    ",".join(f"{start}:{1 + start % 2}" for start in range(10_000)), "0:1,1e-320:2", "0:1,1e308:2",
)  # fmt: skip
LAWS = (
    "exponential", "deterministic", "erlang:stages=3", "erlang:stages=1e400", "hyperexponential:cv=4",
    "hyperexponential:cv=0.5", "coxian:means=0.5/4,next=0.2", "coxian:means=1/2", "lognormal:cv=4",
    "lognormal:cv=1e-400", "weibull:shape=0.1", "weibull:cv=100", "pareto:shape=1.5,ratio=1000", "pareto:shape=1",
    "pareto:shape=1.01", "empirical:missing.txt", "empirical:/dev/zero", "empirical:pipe", "empirical:binary.toml",
    "empirical:durations.csv", "empirical:durations.csv,column=duration", "empirical:durations.csv,column=",
    "poisson", "renewal:cv=0", "renewal:cv=2", "renewal:renewal:cv=2", "renewal:lognormal:cv=4", "renewal:",
    "bursty:ratio=10,share=0.1,length=2", "bursty:ratio=1e6,share=1e-6,length=1e-6", "bursty:ratio=nan",
    "recorded:durations.csv,column=start", "recorded:durations.csv,column=duration", "recorded:huge.toml", ":",
    "lognormal:cv=" + "9" * 50, "lognormal:" + "cv=4," * 2000,
)  # fmt: skip
ADDRESSES = (
    "127.0.0.1:0", "127.0.0.1:1", "256.1.1.1:80", "1.2.3:80", "[::1]:0", "::1:80", "[::1]", "localhost:0",
    "localhost", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1", "127.0.0.1:", "@", "[fe80::1%lo]:0",
    "[::ffff:1.2.3.4]:80",
    "0.0.0.0:0", "[::]:0", "http://x:1", "a" * 300 + ":1", ":80", "\uff1127.0.0.1:80", "xn--:1", "a..b:1", "-a:1",
    "a_b:1", "127.0.0.1:1,127.0.0.1:2", "127.0.0.1:0x50", "127.0.0.1:8080 ", "[127.0.0.1]:1", "é.example:1",
)  # fmt: skip
WORDS = (
    "threshold", "jsq", "power-of-d", "random", "round-robin", "jiq", "jbt", "pull", "THRESHOLD", "jsq,jsq",
    "jsq,", ",", "jsq,random,jsq", "threshold,nope", "best", "fig1", "fig7", "fractional", "whole", "fluid", "sum",
    "/health",
    "health", "/a b", "//", "/" + "a" * 5000,
)  # fmt: skip


def prepare_folder(folder: Path) -> None:
    """Put the files that `PATHS` names into a folder: pipes, loops, directories, bad and huge TOML."""
    for name in ("folder.png", "folder.npz"):
        (folder / name).mkdir()
    for name in ("pipe", "pipe.toml"):
        os.mkfifo(folder / name)
    for name in ("loop.png", "loop.toml"):
        (folder / name).symlink_to(name)
    with (folder / "huge.toml").open("wb") as file:
        file.truncate(10**12)  # sparse: it takes no space
    (folder / "binary.toml").write_bytes(bytes(range(256)))
    (folder / "deep.toml").write_text("pools = " + "[" * 100_000)
    (folder / "long.toml").write_text("pools = " + "9" * 100_000)
    (folder / "empty.toml").write_text("")
    (folder / "durations.csv").write_text("start,duration\n0,2\n1,0.5\n1,3e300\n")
    sessions = "".join(f"{start},{1 + start % 7},s{start % 3}\n" for start in range(60))
    (folder / "sessions.csv").write_text("start,duration,server\n" + sessions)
    (folder / "twice.toml").write_text("pools = 1\npools = 2\n")
    (folder / "types.toml").write_text('pools = "2"\nload = [1]\nlisten = 5\npool = {a = 1}\nseed = 1979-05-27\n')
