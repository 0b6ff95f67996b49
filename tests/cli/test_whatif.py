"""`evenly whatif` and `evenly simulate --record`: text, JSON, files and bad input."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_contract import assert_kept

DATA = Path(__file__).parent / "data"
WINDOW = ("--warmup", "20", "--until", "180")
KEYS = {"policy", "spread", "max_tasks", "crowded_share", "messages", "threshold", "sizing", "verdict"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three servers, one session per second; the first server got half of them."""
    rows = [f"{i},{5 + i % 4},{('a', 'b', 'a', 'c')[i % 4]}" for i in range(200)]
    path = tmp_path / "log.csv"
    path.write_text("start,duration,server\n" + "\n".join(rows) + "\nnot a line\n")
    return path


def test_one_row_per_policy_and_one_for_what_happened(run: Run, log: Path) -> None:
    outcome = run("whatif", log, "--policies", "jsq,round-robin", *WINDOW)
    assert (outcome.code, outcome.err) == (0, "")
    assert re.match(
        r"3 servers now, the fullest with \d\.\d sessions on average; \d\.\d on the fullest with round-robin; "
        r"\d\.\d on the fullest with jsq \(least_conn on one proxy\)\. Give --limit N",
        outcome.out,
    )
    assert "200 sessions, 1 of 201 lines skipped; 3 servers (named in the log)" in outcome.out
    assert "line 202" in outcome.out  # the first bad line is shown
    rows = [
        line.split()[0] for line in outcome.out.splitlines() if re.match(r" (observed|jsq|round-robin) ", line)
    ]
    assert rows == ["observed", "jsq", "round-robin"]
    assert re.search(r"jsq: (As even as it gets|Nearly even): the fullest server has \d\.\d sessions", outcome.out)
    assert "observed: " in outcome.out and "that were open when the log begins" in outcome.out


def test_the_answer_comes_first(run: Run, log: Path, tmp_path: Path) -> None:
    """Servers now, those that the policy needs, and those of least_conn on one proxy: as in the table."""
    report = tmp_path / "report.html"
    outcome = run("whatif", log, "--alpha", "0.5", "--limit", "3", "--servers", 4, *WINDOW, "--html", report)
    answer = outcome.out.splitlines()[0]
    found = re.fullmatch(
        r"3 servers now\. Needed for at most 3 sessions on each, 99\.9 % of the time: (\d+) with threshold, "
        r"alpha 0\.5; (\d+) with jsq \(least_conn on one proxy\)\.",
        answer,
    )
    assert found is not None, answer
    for policy, servers in (("threshold", found[1]), ("jsq", found[2])):
        [row] = [line for line in outcome.out.splitlines() if re.match(rf" {policy}[, ]", line)]
        assert row.split()[-1] == servers
    assert re.search(rf"</h1>\s*<p class=\"answer\">{re.escape(answer)}</p>", report.read_text(encoding="utf-8"))
    only = run("whatif", log, "--policies", "observed", *WINDOW)
    assert only.out.startswith("3 servers now, the fullest with ") and only.code == 0


@pytest.mark.parametrize("policy", ["random", "threshold", "jsq", "observed"])
def test_the_answer_has_least_conn_whatever_is_replayed(run: Run, log: Path, policy: str) -> None:
    options = ("--limit", "3", *WINDOW)
    all_of_them = run("whatif", log, "--policies", "jsq,random,threshold", *options, "--json").json()
    [least] = [each["sizing"]["servers"] for each in all_of_them["policies"] if each["policy"] == "jsq"]
    outcome = run("whatif", log, "--policies", policy, *options)
    assert re.match(
        r"3 servers now\. Needed for at most 3 sessions on each, 99\.9 % of the time: "
        rf"(\d+ with {policy}[^;]*; )?{least} with jsq \(least_conn on one proxy\)\.\n",
        outcome.out,
    )
    assert ("\n jsq " in outcome.out) == (policy == "jsq")
    found = run("whatif", log, "--policies", policy, *options, "--json").json()
    assert [each["policy"] for each in found["policies"]] == [policy] * (policy != "observed")
    assert found["least_conn"]["servers"] == all_of_them["least_conn"]["servers"] == least


def test_json_has_the_keys_of_the_contract(run: Run, log: Path) -> None:
    found = run("whatif", log, "--alpha", "0.5", "--limit", "3", *WINDOW, "--json").json()
    assert found["sessions"] == 200 and found["skipped"] == 1 and found["bad_lines"][0]["line"] == 202
    assert [each["policy"] for each in found["policies"]] == [
        "round-robin", "random", "power-of-d", "jsq", "threshold",
    ]  # fmt: skip
    for each in (*found["policies"], found["observed"]):
        assert each.keys() >= KEYS
        assert each["spread"]["mean"] >= 0 and each["max_tasks"]["mean"] > 0
    assert found["observed"]["spread"]["mean"] > found["policies"][3]["spread"]["mean"]
    assert found["observed"]["messages"] is None and found["observed"]["sizing"] is None
    assert found["policies"][3]["sizing"]["servers"] >= found["policies"][3]["sizing"]["bound"]


def test_keys_and_values_are_kept(run: Run, log: Path) -> None:
    [case] = json.loads((DATA / "whatif.json").read_text(encoding="utf-8"))
    found = run("whatif", log, *case["arguments"].split(), "--json").json()
    assert found.pop("log") == str(log)
    assert_kept(found, case["output"], "whatif")


def test_a_report_is_complete_in_itself_and_escapes_the_log(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = "".join(f"{i},4,<script>alert({i % 2})</script>\n" for i in range(100))
    log.write_text(f"start,duration,server\n{rows}<b>bad</b>\n")
    report, picture = tmp_path / "report.html", tmp_path / "picture.svg"
    options = ("--limit", "3", "--alpha", "0.5", "--html", report, "--plot", picture)
    outcome = run("whatif", log, *options)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith(f"wrote {picture}\nwrote {report}\n")
    html = report.read_text(encoding="utf-8")
    assert "<script" not in html and "<b>bad" not in html and "&lt;b&gt;bad" in html
    assert not re.search(r"(src|href)=|url\(|@import", html)
    assert html.count("<svg viewBox") == 2 and "prefers-color-scheme: dark" in html
    assert re.search(r"<th>policy</th>\s*<th>servers needed</th>", html)  # seen without scrolling on a phone
    colors = re.findall(r"--c\d: (#\w+)", html)
    assert len(colors) == 16 and len(set(colors[:8])) == len(set(colors[8:])) == 8
    dashes = re.findall(r"\.c\d \{ stroke: var\(--c\d\);(.*?)\}", html)
    assert len(dashes) == len(set(dashes)) == 8  # lines that coincide show through each other
    assert picture.read_text(encoding="utf-8").startswith("<?xml")


def test_a_recorded_simulation_is_replayed(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    system = ("--pools", 5, "--load", 2.5, "--alpha", 0.6, "--horizon", 40, "--warmup", 5, "--initial-tasks", 1.4)
    simulated = run("simulate", *system, "--seed", 3, "--record", log, "--json").json()
    assert simulated["ci95"] is None
    window = ("--warmup", 5, "--until", 40)
    [again] = run(
        "whatif", log, "--policies", "threshold", "--alpha", 0.6, *window, "--servers", 5, "--seed", 3, "--json"
    ).json()["policies"]
    for key in ("spread", "messages", "mean_tasks"):
        assert again[key] == simulated[key]
    assert again["max_tasks"]["mean"] == simulated["max_tasks"]["mean"]
    assert again["threshold"]["time_at"] == simulated["threshold"]["time_at"]
    shown = run("simulate", *system, "--record", log)
    assert shown.out.endswith(f"wrote {log}\n")


def test_a_policy_of_ones_own_is_replayed(run: Run, log: Path) -> None:
    found = run("whatif", log, "--policies", "evenly.core:RoundRobin,round-robin", *WINDOW, "--json").json()
    own, ours = found["policies"]
    assert own["policy"] == "evenly.core:RoundRobin" and own["label"] == "RoundRobin"
    assert own["spread"] == ours["spread"] and own["crowded_share"] == ours["crowded_share"]


BAD = [
    (("--servers", "0"), "--servers must be a whole number from 1 to 1000000, not 0."),
    (("--limit", "0"), "--limit must be a whole number from 1 to"),
    (
        ("--warmup", "50", "--until", "20"),
        "--until must be after the warm-up, which ends at 50 seconds, not at 20.",
    ),
    (("--warmup", "1e6"), "--warmup must be below 199 seconds"),
    (("--policies", "best"), "policy must be one of"),
    (("--policies", "jsq,"), "--policies must be names separated by commas"),
    (("--policies", "round-robin", "--delay", "1"), "--delay is for policy"),
    (("--format", "nope"), "format must be one of"),
    (("--columns", "start"), "--columns must be written ROLE=NAME"),
    (("--html", "report.txt"), "--html must name a file that ends in .html or .htm, not 'report.txt'."),
    (("--plot", "plot.gif"), "--plot must name a file that ends in"),
]


@pytest.mark.parametrize(("options", "words"), BAD)
def test_bad_input_is_one_sentence(run: Run, log: Path, options: tuple[str, ...], words: str) -> None:
    outcome = run("whatif", log, *options)
    assert outcome.code == 2 and outcome.out == ""
    assert outcome.err.count("\n") == 1 and words in outcome.err


def test_what_happened_needs_servers_in_the_log(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("start,duration\n0,1\n1,1\n2,1\n")
    outcome = run("whatif", log, "--policies", "observed,jsq", "--servers", 2)
    assert outcome.code == 2
    assert outcome.err == (
        "evenly: What really happened is not known: the log names no servers. Leave out the policy observed.\n"
    )
    outcome = run("whatif", log)
    assert outcome.err == "evenly: The log names no servers: give their number, --servers 20 or servers=20.\n"


@pytest.mark.parametrize("options", [("--replications", 2), ("--batches", 5), ("--steady-state",)])
def test_only_a_single_run_is_recorded(run: Run, tmp_path: Path, options: tuple[object, ...]) -> None:
    outcome = run("simulate", "--pools", 3, "--load", 1, "--record", tmp_path / "log", *options)
    assert outcome.code == 2 and "--record writes" in outcome.err
    assert not (tmp_path / "log").exists()
