"""What is lost is repaired by the next heartbeat, and one pool that does not receive does not stop the others."""

from evenly.core.protocol import PoolPeer
from tests.core.protocol.support import SILENCE, Net, forget, net


def test_a_heartbeat_repairs_a_lost_token() -> None:
    made = net(2, 9, threshold=1)
    forget(made.pools["a"].end(("old", 0)))
    assert not made.dispatcher.dispatcher.yellow
    made.deliver(made.pools["a"].heartbeat())
    assert list(made.dispatcher.dispatcher.yellow) == ["a"]


def test_a_heartbeat_repairs_a_lost_arrival() -> None:
    made = net(0, threshold=3)
    forget(made.arrive(made.pick()))
    assert len(made.dispatcher.open_tickets("a")) == 1
    made.deliver(made.pools["a"].heartbeat())
    assert made.dispatcher.open_tickets("a") == ()
    assert made.estimate("a") == 1


def changed() -> Net:
    """Return three busy pools right after a threshold change, which only a and b have heard of and answered."""
    made = net(9, 9, 9, threshold=2, alpha="0.5")
    made.pick()
    for pool, message in made.dispatcher.messages():
        if pool != "c":
            made.deliver(made.pools[pool].receive(message))
    assert not made.dispatcher.dispatcher.settled
    return made


def test_a_heartbeat_repairs_a_lost_notice() -> None:
    made = changed()
    assert made.pools["c"].notice.threshold == 2
    made.deliver(made.pools["c"].heartbeat())
    assert made.pools["c"].notice.threshold == 3
    assert made.dispatcher.dispatcher.settled


def test_a_heartbeat_repairs_a_lost_answer() -> None:
    made = changed()
    made.dispatcher.receive(0.0, made.pools["c"].heartbeat())
    [(_, message)] = made.dispatcher.messages()
    forget(made.pools["c"].receive(message))
    assert not made.dispatcher.dispatcher.settled
    made.deliver(made.pools["c"].heartbeat())
    assert made.dispatcher.dispatcher.settled


def test_a_heartbeat_that_is_overtaken_repairs_a_lost_notice_too() -> None:
    made = changed()
    heartbeat, overtaking = made.pools["c"].heartbeat(), made.pools["c"].refuse(1)
    made.dispatcher.receive(0.0, overtaking)
    assert not made.dispatcher.messages()
    assert not made.dispatcher.receive(0.0, heartbeat)
    made.settle()
    assert made.pools["c"].notice.threshold == 3
    assert made.dispatcher.dispatcher.settled


def test_an_old_heartbeat_of_a_pool_that_has_left_is_not_answered() -> None:
    made = changed()
    heartbeat = made.pools["c"].heartbeat()
    made.deliver(made.pools["c"].leave())
    assert not made.dispatcher.receive(0.0, heartbeat)
    assert not made.dispatcher.messages()


def test_a_heartbeat_sent_before_the_notice_came_is_no_answer() -> None:
    made = changed()
    made.dispatcher.receive(0.0, made.pools["c"].heartbeat())
    assert not made.dispatcher.dispatcher.settled


def test_any_token_after_the_answer_settles() -> None:
    made = changed()
    made.dispatcher.receive(0.0, made.pools["c"].heartbeat())
    [(_, message)] = made.dispatcher.messages()
    forget(made.pools["c"].receive(message))
    for number in range(6):
        made.deliver(made.pools["c"].end(("old", number)))
    assert made.estimate("c") == 3
    assert made.dispatcher.dispatcher.settled


def beat(made: Net, deaf: str) -> None:
    """Let all pools send a heartbeat; the deaf one does not receive."""
    for pool in made.pools.values():
        made.dispatcher.receive(made.now, pool.heartbeat())
        made.settle_all_but(deaf)
    made.dispatcher.tick(made.now)


def test_a_pool_that_receives_nothing_does_not_stop_the_rule() -> None:
    made = changed()
    for made.now in (10.0, 20.0, SILENCE - 0.5):
        beat(made, deaf="c")
        made.pick()
        assert made.dispatcher.dispatcher.threshold == 3
    made.now = SILENCE
    made.dispatcher.tick(SILENCE)
    assert made.dispatcher.dispatcher.settled
    assert "c" in made.dispatcher.dispatcher.pools
    made.pick()
    assert made.dispatcher.dispatcher.threshold == 4
    # Each further step takes as long.
    for threshold in (4, 5):
        assert made.dispatcher.dispatcher.threshold == threshold
        made.settle_all_but("c")
        for _ in range(3):
            made.now += SILENCE / 3 - 0.1
            beat(made, deaf="c")
            made.pick()
            assert made.dispatcher.dispatcher.threshold == threshold
        made.now += 0.4
        made.pick()


def test_a_pool_that_receives_again_is_not_waited_for() -> None:
    made = changed()
    made.now = SILENCE - 1
    beat(made, deaf="c")
    made.now = SILENCE
    beat(made, deaf="")
    assert made.pools["c"].notice.threshold == 3
    made.pick()
    made.settle_all_but("c")
    made.dispatcher.receive(made.now, made.pools["c"].heartbeat())
    assert not made.dispatcher.dispatcher.settled  # sent before the notice came
    made.settle()
    assert made.dispatcher.dispatcher.settled


def test_a_new_pool_that_receives_nothing_does_not_stop_the_rule() -> None:
    made = net(9, 9, 9, threshold=2, alpha="0.5")
    made.now = SILENCE - 1  # the wait begins when it joins, not at the last change
    beat(made, deaf="z")
    made.pools["z"] = PoolPeer("z", incarnation=1)
    beat(made, deaf="z")
    made.now += SILENCE - 1
    beat(made, deaf="z")
    assert made.dispatcher.dispatcher.awaits("z")
    made.pick()
    assert made.dispatcher.dispatcher.threshold == 2
    made.now += 1
    made.dispatcher.tick(made.now)
    assert made.dispatcher.dispatcher.settled


def test_a_pool_that_returns_and_receives_nothing_counts_from_its_return() -> None:
    made = net(9, 9, 9, threshold=2, alpha="0.5")
    made.now = SILENCE - 1
    made.deliver(made.pools["c"].leave())
    for pool in "ab":
        made.deliver(made.pools[pool].heartbeat())
    made.pick()
    made.settle()
    made.now = SILENCE
    beat(made, deaf="c")
    for made.now in (SILENCE + 5, 2 * SILENCE - 1):
        beat(made, deaf="c")
        assert made.dispatcher.dispatcher.awaits("c")
    made.dispatcher.tick(2 * SILENCE)
    assert made.dispatcher.dispatcher.settled


def test_the_wait_starts_again_with_every_change() -> None:
    made = net(9, 9, 9, threshold=2, alpha="0.5")
    made.now = SILENCE - 1
    beat(made, deaf="")
    made.dispatcher.begin_term(2)
    made.settle_all_but("c")
    made.now += SILENCE - 1
    beat(made, deaf="c")
    assert made.dispatcher.dispatcher.awaits("c")
    made.dispatcher.tick(made.now + 1)
    assert made.dispatcher.dispatcher.settled
