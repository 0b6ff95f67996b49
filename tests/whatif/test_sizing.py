"""The search for a number of servers, on functions that are known."""

from hypothesis import given
from hypothesis import strategies as st

from evenly.whatif.sizing import Hour, find_servers


@given(needed=st.integers(5, 60), busiest=st.integers(5, 60), bound=st.integers(1, 5))
def test_the_smallest_number_is_found(needed: int, busiest: int, bound: int) -> None:
    tried: list[int] = []

    def measure(servers: int) -> dict[Hour, float]:
        tried.append(servers)
        return {None: float(servers >= needed), 7: 0.9989 if servers < busiest else 0.999}

    sizing = find_servers(measure, {None: bound, 7: bound}, limit=12)
    assert sizing.servers == needed
    assert sizing.by_hour == {7: busiest}
    assert len(set(tried)) == len(tried) == sizing.replays <= 24
    assert min(tried) >= bound


def test_a_number_that_meets_the_limit_by_luck_is_passed_over() -> None:
    def measure(servers: int) -> dict[Hour, float]:
        return {None: 1.0 if servers in (4, 5, 9) or servers >= 12 else 0.99}

    assert find_servers(measure, {None: 9}, limit=3).servers == 12  # 9 is met, and 10 is not
    assert find_servers(measure, {None: 4}, limit=3).servers == 4


def test_an_hour_that_meets_the_limit_by_luck_is_passed_over() -> None:
    def measure(servers: int) -> dict[Hour, float]:
        return {None: 1.0, 5: 1.0 if servers == 4 or servers >= 6 else 0.99}

    assert find_servers(measure, {None: 4, 5: 4}, limit=3).by_hour == {5: 6}  # 4 is met, and 5 is not


def test_a_search_without_end_ends() -> None:
    sizing = find_servers(lambda _: {None: 0.0, 3: 0.5}, {None: 2, 3: 1}, limit=1)
    assert sizing.servers is None and sizing.by_hour == {3: None}
    assert sizing.to_dict() == {"limit": 1, "servers": None, "bound": 2, "by_hour": {"3": None}}
