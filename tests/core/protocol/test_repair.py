"""What is lost is repaired by the next heartbeat, and a pool that receives nothing does not disturb the others."""

from evenly.core.protocol import PoolPeer
from tests.core.protocol.support import LEASE, Net, forget, net, peer


def test_a_heartbeat_repairs_a_lost_departure() -> None:
    made = net(2, 9, threshold=1)
    forget(made.pools["a"].end(("old", 0)))
    assert made.dispatcher.tokens == (0, 0)
    made.deliver(made.pools["a"].heartbeat())
    assert made.dispatcher.tokens == (0, 1)


def test_a_heartbeat_reports_the_tickets_that_have_arrived() -> None:
    made = net(0, threshold=3)
    assert made.arrive(made.pick()) is None
    assert len(made.dispatcher.open_tickets("a")) == 1
    made.deliver(made.pools["a"].heartbeat())
    assert made.dispatcher.open_tickets("a") == ()
    assert made.estimate("a") == 1


def test_a_client_carries_the_threshold_to_its_pool() -> None:
    made = net(3, 4, 5, threshold=2, alpha="0.5")
    pick = made.pick()
    assert (pick.pool, pick.threshold, made.dispatcher.threshold) == ("a", 3, 3)
    assert [pool.threshold for pool in made.pools.values()] == [2, 2, 2]
    made.arrive(pick)
    assert [pool.threshold for pool in made.pools.values()] == [3, 2, 2]


def test_a_heartbeat_brings_the_threshold_to_a_pool_without_traffic() -> None:
    made = net(3, 4, 5, threshold=2, alpha="0.5")
    made.pick()
    made.deliver(made.pools["c"].heartbeat())
    assert made.pools["c"].threshold == 3


def test_late_clients_and_late_replies_bring_no_old_threshold() -> None:
    made = net(9, threshold=2, alpha="0.5")
    pool = made.pools["a"]
    early, reply = made.pick(), made.dispatcher.receive(0.0, pool.heartbeat())
    late = made.pick()
    assert reply is not None
    assert (early.threshold, reply.threshold, late.threshold) == (3, 3, 4)
    pool.receive(reply)
    assert pool.threshold == 3
    made.arrive(late)
    made.arrive(early)
    pool.receive(reply)
    assert pool.threshold == 4


def test_an_overtaken_heartbeat_is_answered_but_changes_nothing() -> None:
    made = net(9, threshold=2)
    heartbeat, overtaking = made.pools["a"].heartbeat(), made.pools["a"].refuse(1)
    made.deliver(overtaking)
    made.pools["a"].end(("old", 0))
    reply = made.dispatcher.receive(0.0, heartbeat)
    assert reply is not None
    assert reply.threshold == 2
    assert made.estimate("a") == 9


def test_a_pool_that_receives_nothing_does_not_stop_the_rule() -> None:
    made = net(9, 9, 9, threshold=2, alpha="0.5")
    for number, threshold in enumerate(range(3, 9)):
        made.pick()
        assert made.dispatcher.threshold == threshold
        for pool in "ab":
            made.deliver(made.pools[pool].heartbeat())
        made.dispatcher.receive(float(number), made.pools["c"].heartbeat())  # the reply is lost
    assert [pool.threshold for pool in made.pools.values()] == [8, 8, 2]


def test_a_new_pool_does_not_disturb_the_rule_before_it_knows_the_threshold() -> None:
    made = net(9, 9, 9, threshold=9, alpha="0.5")
    newcomer = PoolPeer("z", incarnation=1)
    assert made.dispatcher.receive(0.0, newcomer.heartbeat()) is not None
    pick = made.pick()
    assert (pick.pool, newcomer.threshold) == ("z", 0)
    newcomer.begin("x", pick.ticket, pick.threshold)
    assert newcomer.threshold == made.dispatcher.threshold


def test_a_pool_that_was_cut_off_is_counted_by_its_last_report_until_it_returns() -> None:
    made = net(1, 9, threshold=5)
    picks = [made.pick() for _ in range(4)]
    for pick in picks:
        made.arrive(pick)
    for number in range(1, 4):
        forget(made.pools["a"].end(number))
    assert made.estimate("a") == 5
    made.now = LEASE
    made.deliver(made.pools["a"].heartbeat())
    assert made.estimate("a") == made.pools["a"].tasks == 2


def test_a_restarted_dispatcher_begins_with_what_pools_report() -> None:
    before = net(7, 8, 9, threshold=8, alpha="0.5")
    after = Net(peer(0, "0.5", term=2))
    after.pools = before.pools
    for pool in after.pools.values():
        after.deliver(pool.heartbeat())
    assert {name: after.estimate(name) for name in "abc"} == {"a": 7, "b": 8, "c": 9}
    after.dispatcher.catch_up()
    assert after.pick().threshold in (8, 9)
