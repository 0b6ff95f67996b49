"""Replay a log: choose the window and the servers, run every policy on the same sessions, and size the fleet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.inputs import check_function, is_listing, shown, whole_number
from evenly.logs import SessionLog, read_log
from evenly.own_policy import find_class
from evenly.policies import DELAYED, PARAMETERS, check_distinct, check_parameters, find_policy
from evenly.sim.given import MAX_GIVEN, GivenSessions
from evenly.sim.limits import MAX_LEVELS
from evenly.sim.recorded import compile_given
from evenly.sim.run import usable_cores
from evenly.sim.scenario import Scenario
from evenly.sim.simulation import Tick
from evenly.whatif.concurrency import Concurrency, concurrency
from evenly.whatif.hours import Hours, hours_of
from evenly.whatif.outcome import LEAST_CONN, OBSERVED, Outcome, new_outcome
from evenly.whatif.replay import replay
from evenly.whatif.result import LogFacts, WhatIf
from evenly.whatif.sizing import TARGET, Hour, Shares, Sizing, find_servers
from evenly.whatif.threads import run_jobs
from evenly.whatif.tuned import tuned_alpha
from evenly.whatif.window import Window, choose_window
from evenly.whatif.wording import notes_of
from evenly.workload.delay import Delay, parse_delay

POLICIES = ("round-robin", "random", "power-of-d", "jsq", "threshold")  # by default
MAX_SERVERS = 10**6
MAX_POLICIES = 100
REPORT_INTERVAL = 5.0  # seconds, for stale-reports
_PARTS = 200  # of the replay, for a picture over time
_READING = 0.4  # share of the work, where the log is read here

Progress = Callable[[float], None]
Pools = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What all replays of a log share."""

    given: GivenSessions
    window: Window
    hours: Hours
    load: float  # sessions per server
    seed: int
    delay: float | str
    limit: int | None
    capacity: int | None
    parameters: dict[str, Any]


def replay_log(
    log: SessionLog | str | Path,
    *,
    policies: Sequence[str | type[Any]] | None = None,
    servers: int | None = None,
    alpha: float | str | Decimal | None = None,
    threshold: int | None = None,
    sample_size: int | None = None,
    report_interval: float | None = None,
    capacity: int | None = None,
    delay: float | str | Delay = 0.0,
    warmup: float | None = None,
    until: float | None = None,
    limit: int | None = None,
    seed: int = 1,
    format: str | None = None,
    unit: str | None = None,
    columns: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> WhatIf:
    """Replay the sessions of a log under several policies: what would have happened?

    Every session begins when it did and lasts as long as it did. Only where it goes is decided anew.

    log: the path of a log, or what `evenly.logs.read_log` returned.
    policies: names, or classes of your own; "observed" is what really happened, which is included anyway if the
        log names servers (default: round-robin, random, power-of-d, jsq, threshold).
    servers: number of servers (default: those that the log names). Those beyond the named ones had no sessions in
        what really happened.
    alpha: makes the threshold learn (default: tuned for the servers and the load, unless `threshold` is given).
    threshold: where the threshold starts; it stays there without `alpha`. Also the threshold of policy jbt.
    sample_size: servers that power-of-d samples (default: 2).
    report_interval: seconds between two reports of a server, under stale-reports (default: 5).
    capacity: sessions that fit on a server; one more is lost (default: no limit). Pull needs one.
    delay: seconds that sessions and messages are on the way, or "exponential:0.05" for an exponential time with
        this mean (default: 0).
    warmup: seconds from the log's beginning to leave out (default: chosen from the durations).
    until: seconds from the log's beginning at which the replay ends (default: chosen as well).
    limit: sessions per server that should not be exceeded for 99.9 % of the time: how many servers does each
        policy need?
    seed: whole number from 0 to 2**64 - 1 (default: 1).
    format, unit, columns: how to read the log, if a path is given; those of `evenly.logs.read_log`.
    progress: called from time to time with the fraction done, 0 to 1.
    """
    check_function("progress", progress)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    message_delay = parse_delay(delay)
    names = _checked_policies(policies, message_delay)
    left_out = _left_out(policies, names)
    given_parameters = {
        "threshold": threshold,
        "alpha": alpha,
        "sample_size": sample_size,
        "report_interval": report_interval,
    }
    check_parameters(_decided(names), given_parameters)
    if limit is not None:
        limit = whole_number("limit", limit, 1, MAX_LEVELS)
    if servers is not None:
        servers = whole_number("servers", servers, 1, MAX_SERVERS)
    read, name = _read(log, progress, format=format, unit=unit, columns=columns)
    count, servers_from = _server_count(read, servers, OBSERVED in names)
    given = _given(read, count)
    window = choose_window(read, warmup=warmup, until=until)
    hours = hours_of(read, window)
    held = concurrency(given.starts, given.durations, window.first, window.last, hours.edges)
    plan = _Plan(
        given=given,
        window=window,
        hours=hours,
        load=max(held.mean / count, 1e-9),
        seed=seed,
        delay=message_delay.written,
        limit=limit,
        capacity=capacity,
        parameters=given_parameters,
    )
    tuned = None
    if "threshold" in names and alpha is None and threshold is None:
        mean = float(given.durations.mean())
        peak = held.quantile(TARGET) / count
        tuned = tuned_alpha(count, peak, message_delay, mean, seed)
        plan = replace(plan, parameters={**given_parameters, "alpha": tuned})
    scenarios = [_scenario(plan, each, count) for each in _decided(names)]
    outcomes, least_conn = _run(plan, count, scenarios, held, read, _rest_of(progress, log))
    happened = next((each for each in outcomes if each.policy == OBSERVED), None)
    began = (read.starts >= window.first) & (read.starts < window.last)
    facts = _facts(read, name, hours)
    return WhatIf(
        log=facts,
        servers=count,
        servers_from=servers_from,
        window=window,
        seed=seed,
        delay=plan.delay,
        limit=limit,
        mean_sessions=held.mean,
        highest_sessions=held.highest,
        mean_duration=float(read.durations[began].mean()),
        policies=tuple(each for each in outcomes if each.policy != OBSERVED),
        observed=happened,
        least_conn=least_conn,
        notes=(*left_out, *notes_of(facts, window, read, alpha=tuned, servers=count)),
    )


def _checked_policies(policies: object, delay: Delay) -> list[str | type[Any]]:
    """Return the policies, each of them known and able to replay."""
    if policies is None:
        return [name for name in POLICIES if delay.mean == 0 or name in DELAYED]
    if not is_listing(policies):
        raise InputError(f"policies must be a list of names, such as ['jsq'], not {shown(policies)}.")
    names: list[str | type[Any]] = list(policies)[: MAX_POLICIES + 1]  # type: ignore[call-overload]
    if not 1 <= len(names) <= MAX_POLICIES:
        raise InputError(f"policies must be 1 to {MAX_POLICIES} names, not {len(names)}.")
    check_distinct(each for each in names if each != OBSERVED)
    for each in _decided(names):
        info = find_policy(each, own=True)
        if info.sized:
            raise InputError(f"A log is replayed on servers of one size: leave out the policy {info.name}.")
        if info.own:
            find_class(each)  # fail before the work
    return names


def _left_out(policies: object, names: Sequence[str | type[Any]]) -> list[str]:
    """Return a sentence about the default policies that cannot take a delay."""
    missing = [] if policies is not None else [name for name in POLICIES if name not in names]
    return [f"Left out, since it works without delays only: {', '.join(missing)}."] if missing else []


def _decided(names: Sequence[str | type[Any]]) -> list[str | type[Any]]:
    """Return the policies without what really happened."""
    return [each for each in names if each != OBSERVED]


def _read(log: object, progress: Progress | None, **how: Any) -> tuple[SessionLog, str]:  # noqa: ANN401
    """Return the sessions and the name of the log."""
    if isinstance(log, SessionLog):
        read, name = log, "the log"
    elif isinstance(log, str | Path):
        share = None if progress is None else lambda done: progress(_READING * done)
        read, name = read_log(Path(log), **how, progress=share), str(log)
    else:
        raise InputError(f"log must be the path of a log or a SessionLog, not {shown(log)}.")
    if not len(read):
        raise InputError("The log has no sessions.")
    if len(read) > MAX_GIVEN:
        raise InputError(f"A replay takes at most {MAX_GIVEN} sessions, not {len(read)}: cut the log into parts.")
    return read, name


def _rest_of(progress: Progress | None, log: object) -> Progress | None:
    """Return the progress of the replays alone."""
    if progress is None or isinstance(log, SessionLog):
        return progress
    return lambda done: progress(_READING + (1 - _READING) * done)


def _server_count(log: SessionLog, servers: int | None, observed: bool) -> tuple[int, str]:
    """Return the number of servers, and where it comes from."""
    if observed and log.servers is None:
        raise InputError(
            "What really happened is not known: the log names no servers. Leave out the policy observed."
        )
    if servers is not None:
        return servers, "as given"
    if log.servers is None:
        raise InputError("The log names no servers: give their number, --servers 20 or servers=20.")
    return whole_number("servers of the log", len(log.server_names), 1, MAX_SERVERS), "named in the log"


def _given(log: SessionLog, servers: int) -> GivenSessions:
    """Return the sessions as a simulation takes them. Those open at time 0 stay where they are, if that exists."""
    starts = log.starts - log.starts[0] if log.starts[0] < 0 else log.starts
    pools = _numbered(log, servers) if log.open_at_start else None
    return GivenSessions(
        starts=starts,
        durations=log.durations,
        open_at_start=0 if pools is None else log.open_at_start,
        pools=pools,
    )


def _numbered(log: SessionLog, servers: int) -> Pools | None:
    """Return the servers of the sessions open at time 0, which a recorded simulation names by their numbers."""
    if log.servers is None or not all(name.isascii() and name.isdigit() for name in log.server_names):
        return None
    numbers = np.array([int(name) if len(name) < 9 else MAX_SERVERS for name in log.server_names])
    pools = numbers[log.servers[: log.open_at_start]].astype(np.int32)
    return pools if pools.max() < servers else None


def _scenario(plan: _Plan, policy: str | type[Any], servers: int) -> Scenario:
    """Return the scenario of a replay, with the parameters that the policy takes."""
    info, given = find_policy(policy, own=True), plan.given
    taken: dict[str, Any] = {name: plan.parameters.get(name) for name in PARAMETERS if name in info.parameters}
    if "report_interval" in taken and taken["report_interval"] is None:
        taken["report_interval"] = REPORT_INTERVAL
    return Scenario(
        policy=policy,
        pools=servers,
        load=plan.load,
        capacity=plan.capacity,
        initial_tasks=given.tasks_at_start(servers) if given.open_at_start else 0,
        delay=plan.delay,
        warmup=plan.window.first,
        horizon=plan.window.last,
        **taken,
    )


def _run(
    plan: _Plan,
    servers: int,
    scenarios: list[Scenario],
    held: Concurrency,
    log: SessionLog,
    progress: Progress | None,
) -> tuple[list[Outcome], Sizing | None]:
    """Run every policy, and what really happened first, in threads. With a limit, size the fleet for jsq too."""
    window = plan.window
    grid = np.linspace(window.begin, window.last, _PARTS + 1)
    least_conn = _scenario(plan, LEAST_CONN, servers)
    to_size = plan.limit is not None and least_conn.policy not in [each.policy for each in scenarios]
    compile_given([*scenarios, *([least_conn] if to_size else [])])

    def policy_job(scenario: Scenario) -> Callable[[Tick], Outcome]:
        def job(tick: Tick) -> Outcome:
            run = replay(scenario, plan.given, seed=plan.seed, stops=grid.tolist(), limit=plan.limit, tick=tick)
            outcome = new_outcome(run, grid, balanced=held.fullest_if_balanced(scenario.pools))
            if plan.limit is None:
                return outcome
            return outcome.with_sizing(_sizing(plan, scenario, plan.hours.parts(held), tick))

        return job

    def observed_job(tick: Tick) -> Outcome:
        pools = max(len(log.server_names), servers)  # one that had no sessions is not named
        scenario = Scenario(policy="random", pools=pools, load=plan.load, warmup=window.first, horizon=window.last)
        given = replace(plan.given, pools=log.servers, open_at_start=0)
        run = replay(scenario, given, seed=plan.seed, stops=grid.tolist(), observed=True, tick=tick)
        return new_outcome(run, grid, balanced=held.fullest_if_balanced(pools), observed=True)

    jobs: list[Callable[[Tick], Outcome | Sizing]] = [policy_job(scenario) for scenario in scenarios]
    if log.servers is not None:
        jobs.insert(0, observed_job)
    if to_size:
        jobs.append(lambda tick: _sizing(plan, least_conn, {None: held}, tick))
    found = run_jobs(jobs, usable_cores(), window.last, progress)
    outcomes = [each for each in found if isinstance(each, Outcome)]
    sizings = [each for each in found if isinstance(each, Sizing)]
    sizings += [each.sizing for each in outcomes if each.policy == LEAST_CONN and each.sizing is not None]
    return outcomes, sizings[0] if sizings else None


def _sizing(plan: _Plan, scenario: Scenario, parts: Mapping[Hour, Concurrency], tick: Tick) -> Sizing:
    """Return the servers that a policy needs for the limit, for the open sessions of each part."""
    assert plan.limit is not None
    limit, hours = plan.limit, plan.hours
    free = replace(plan.given, pools=None, open_at_start=0)

    def measure(servers: int) -> Shares:
        sample = None if scenario.sample_size is None else min(scenario.sample_size, servers)
        system = replace(scenario, pools=servers, initial_tasks=0, sample_size=sample, capacity=None)
        run = replay(system, free, seed=plan.seed, stops=hours.edges.tolist(), limit=limit, tick=tick)
        return hours.within(run)

    bounds: dict[Hour, int] = {hour: max(-(-part.quantile(TARGET) // limit), 1) for hour, part in parts.items()}
    return find_servers(measure, bounds, limit)


def _facts(log: SessionLog, name: str, hours: Hours) -> LogFacts:
    return LogFacts(
        name=name,
        format=log.format,
        sessions=len(log),
        lines=log.lines,
        skipped=log.skipped,
        bad_lines=log.bad_lines,
        notes=log.notes,
        servers_named=len(log.server_names) if log.servers is not None else 0,
        unnamed=0 if log.servers is None else int(np.count_nonzero(log.servers < 0)),
        origin=log.origin if log.has_clock else None,
        utc=log.utc_offset_known,
    )
