"""What a replay measures, on logs small enough to count by hand, and what it refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly import InputError, replay_log
from evenly.logs import SessionLog
from evenly.whatif import WhatIf

EIGHT_AM = 1_763_366_400.0  # a full hour


def log_of(
    starts: list[float],
    durations: list[float],
    servers: list[int] | None = None,
    **more: Any,  # noqa: ANN401
) -> SessionLog:
    values: dict[str, Any] = {
        "starts": np.array(starts, float),
        "durations": np.array(durations, float),
        "origin": 0.0,
        "servers": None if servers is None else np.array(servers, np.int32),
        "server_names": () if servers is None else tuple(f"s{place}" for place in range(max(servers) + 1)),
        "format": "csv",
        "lines": len(starts),
        "skipped": 0,
        "bad_lines": (),
        "notes": (),
        "written_at_end": False,
        "has_clock": False,
        "utc_offset_known": False,
        **more,
    }
    return SessionLog(**values)


# Two servers; four sessions of ten seconds, one every second; the first three went to server 0.
FOUR = ([0.0, 1.0, 2.0, 3.0], [10.0, 10.0, 10.0, 10.0], [0, 0, 0, 1])


def test_what_happened_is_measured() -> None:
    result = replay_log(log_of(*FOUR), policies=["round-robin"], warmup=0.0, until=10.0)
    observed, even = result.observed, result["round-robin"]
    assert observed is not None
    # From 0 s on server 0 has 1, 2, 3 and 3 sessions, server 1 none up to 3 s and one then.
    assert observed.max_tasks == pytest.approx((1 + 2 + 8 * 3) / 10)
    assert observed.spread == pytest.approx((0.5 + 1.0 + 1.5 + 7 * 1.0) / 10)
    assert observed.highest == 3
    # The average, rounded up, is 1, 1, 2 and 2: only from 2 s to 3 s does a server have two more.
    assert observed.crowded_share == pytest.approx(0.0)
    assert even.max_tasks == pytest.approx((1 + 1 + 2 * 8) / 10)
    assert even.spread == pytest.approx((0.5 + 0 + 0.5 + 0) / 10)
    assert even.balanced == pytest.approx(even.max_tasks)
    assert even.messages_per_session == 0
    assert result.mean_sessions == pytest.approx((1 + 2 + 3 + 7 * 4) / 10)
    assert result.highest_sessions == 4


def test_crowded_servers_have_two_more_than_the_average_rounded_up() -> None:
    # Three servers: five sessions on the first, one on the second; the average is 2.
    log = log_of([0.0] * 6 + [4.0], [8.0] * 7, [0] * 5 + [1] + [2])
    observed = replay_log(log, policies=["jsq"], warmup=0.0, until=8.0).observed
    assert observed is not None
    # Up to 4 s, five sessions are crowded: 5 >= 2 + 2. From 4 s on, the average is 7 / 3, and 5 >= 3 + 2 still.
    assert observed.crowded_share == pytest.approx((5 * 4 + 5 * 4) / (6 * 4 + 7 * 4))


def test_crowding_before_the_warm_up_ends_does_not_count() -> None:
    starts, durations = [*[0.0] * 6, 8.0, 8.0, 8.0], [*[5.0] * 6, 4.0, 4.0, 4.0]
    log = log_of(starts, durations, [*[0] * 6, 0, 1, 2])
    whole, late = (replay_log(log, policies=["jsq"], warmup=warmup, until=12.0) for warmup in (0.0, 6.0))
    assert whole.observed is not None and late.observed is not None
    assert whole.observed.crowded_share == pytest.approx(30 / 42)
    assert late.observed.crowded_share == 0 and late.observed.highest == 1


def test_sessions_end_before_others_begin() -> None:
    log = log_of([0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0])
    result = replay_log(log, policies=["jsq"], servers=2, warmup=0.0, until=3.0)
    assert result["jsq"].highest == 1
    assert result.observed is None and result.to_dict()["observed"] is None


@pytest.fixture(scope="module")
def sized() -> WhatIf:
    """Three hours of a wall clock, the second twice as busy."""
    rng = np.random.default_rng(3)
    starts = np.sort(np.concatenate([rng.uniform(0, 10800, 3000), rng.uniform(3600, 7200, 2000)]))
    log = log_of(starts.tolist(), rng.exponential(60.0, 5000).tolist(), origin=EIGHT_AM, has_clock=True,
                 utc_offset_known=True)  # fmt: skip
    return replay_log(log, policies=["random", "jsq", "threshold"], servers=12, alpha=0.5, limit=9, seed=4)


def test_servers_are_found_for_a_limit_and_by_hour(sized: WhatIf) -> None:
    needed = {each.policy: each.sizing for each in sized.policies}
    for sizing in needed.values():
        assert sizing is not None and sizing.servers is not None
        assert sizing.bound <= sizing.servers
        assert sorted(sizing.by_hour) == [8, 9, 10]
        assert sizing.by_hour[8] < sizing.by_hour[9] >= sizing.by_hour[10]  # type: ignore[operator]
    assert needed["jsq"].servers < needed["random"].servers  # type: ignore[operator,union-attr]
    assert needed["jsq"].bound == needed["random"].bound  # type: ignore[union-attr]


def test_an_hour_that_is_hardly_measured_has_no_number() -> None:
    starts = np.arange(0.0, 4000.0, 10.0)  # from 07:59:50 on, for an hour and 400 seconds
    log = log_of(starts.tolist(), [5.0] * starts.size, origin=EIGHT_AM - 10, has_clock=True)
    sizing = replay_log(log, policies=["jsq"], servers=2, limit=1)["jsq"].sizing
    assert sizing is not None and sizing.by_hour == {8: 1}


def test_the_result_speaks_for_itself(sized: WhatIf) -> None:
    assert repr(sized).startswith("WhatIf(5,000 sessions on 12 servers")
    assert list(sized.to_pandas()["policy"]) == ["random", "jsq", "threshold, alpha 0.5"]
    assert set(sized.timeline) == {"policy", "time", "spread", "fullest", "mean"}
    assert len(sized.timeline) == 600
    for outcome in sized.policies:
        assert outcome.verdict.endswith(".") and outcome.verdict.count(". ") == 0
        inside = outcome.times > sized.window.warmup
        assert outcome.fullest_at[inside].mean() == pytest.approx(outcome.max_tasks, rel=0.02)
    assert sized == sized and sized.to_dict()["policies"][0]["policy"] == "random"  # noqa: PLR0124


def test_the_same_seed_gives_the_same_numbers_and_a_path_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("start,duration,server\n" + "".join(f"{i},{3 + i % 4},s{i % 3}\n" for i in range(200)))
    one, two = (replay_log(path, policies=["random", "observed"], seed=6, warmup=10.0) for _ in range(2))
    assert one["random"].window.spread == two["random"].window.spread
    assert one["random"].spread != replay_log(path, policies=["random"], seed=7, warmup=10.0)["random"].spread
    assert one.log.name == str(path) and one.servers == 3 and one.servers_from == "named in the log"


def test_sessions_without_a_server_are_left_out_of_the_observed_row() -> None:
    log = log_of([0.0, 0.0, 0.0], [4.0, 4.0, 4.0], [0, 1, -1])
    result = replay_log(log, policies=["jsq"], warmup=0.0, until=4.0)
    assert result.observed is not None and result.observed.max_tasks == pytest.approx(1.0)
    assert any("leaves out: 1." in note for note in result.notes)


def test_servers_that_had_no_session_count_in_the_observed_row() -> None:
    log = log_of([0.0] * 4, [4.0] * 4, [0] * 4)
    result = replay_log(log, policies=["jsq"], servers=4, warmup=0.0, until=4.0)
    assert result.observed is not None and result.observed.servers == 4
    assert result.observed.spread == pytest.approx(3**0.5) and result.observed.balanced == 1
    assert "The log names 1 server; the observed row has 3 more, without sessions." in result.notes
    fewer = replay_log(log_of(*FOUR), policies=["jsq"], servers=1, warmup=0.0, until=4.0)
    assert fewer.observed is not None and fewer.observed.servers == 2
    assert "The log names 2 servers; the policies ran on 1." in fewer.notes


def test_defaults_that_take_no_delay_are_named() -> None:
    log = log_of(*FOUR)
    late = replay_log(log, alpha=0.5, delay=0.1, warmup=0.0, until=4.0)
    assert "Left out, since it works without delays only: round-robin." in late.notes
    assert not any("Left out" in note for note in replay_log(log, alpha=0.5, warmup=0.0, until=4.0).notes)


def test_one_server_is_not_written_as_many() -> None:
    result = replay_log(log_of(*FOUR), policies=["threshold"], servers=1, limit=4, warmup=0.0, until=4.0)
    assert "alpha 0.5 is tuned for 1 server and the highest load." in result.notes
    assert "on 1 server," in repr(result) and "takes 1 server," in result["threshold"].verdict


BAD: list[tuple[dict[str, Any], str]] = [
    ({"servers": 0}, "servers must be a whole number from 1"),
    ({"limit": 0}, "limit must be a whole number from 1"),
    ({"warmup": 5.0, "until": 4.0}, "until must be after the warm-up, which ends at 5 seconds, not at 4"),
    ({"warmup": 50.0}, "warmup must be below 3 seconds"),
    ({"until": 0.0, "warmup": None}, "until must be above"),
    ({"warmup": -1.0}, "warmup must be zero or a positive number"),
    ({"warmup": 3.5, "until": 9.0}, "No session begins from 3.5 to 9 seconds"),
    ({"policies": []}, "policies must be 1 to 100 names"),
    ({"policies": ["weighted-least"]}, "servers of one size"),
    ({"policies": ["jsq", "observed", "jsq"]}, "policies must name each policy once, not 'jsq' twice"),
    ({"policies": ["jsq"], "alpha": 0.5}, "alpha is for policy threshold"),
    ({"policies": ["round-robin"], "delay": 0.5}, "delay is for policy"),
    ({"policies": ["pull"]}, "needs a capacity"),
    ({"seed": -1}, "seed must be"),
    ({"policies": ["nowhere:Policy"]}, "no module 'nowhere'"),
]


@pytest.mark.parametrize(("options", "words"), BAD)
def test_bad_input_is_one_sentence(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replay_log(log_of(*FOUR), **options)


def test_a_log_without_servers_or_sessions_is_refused() -> None:
    unnamed = log_of(*FOUR[:2])
    with pytest.raises(InputError, match="names no servers: give their number, --servers 20"):
        replay_log(unnamed)
    with pytest.raises(InputError, match="What really happened is not known"):
        replay_log(unnamed, servers=2, policies=["observed", "jsq"])
    with pytest.raises(InputError, match="The log has no sessions"):
        replay_log(log_of([], []), servers=2)
    with pytest.raises(InputError, match="log must be the path of a log or a SessionLog, not 7"):
        replay_log(7)  # type: ignore[arg-type]
