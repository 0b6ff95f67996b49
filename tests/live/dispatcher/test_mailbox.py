"""Messages on their way to a shared store: the newest of a pool counts, and no heartbeat is skipped."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from evenly.core.protocol import PoolPeer, ToDispatcher
from evenly.core.protocol.messages import Kind
from evenly.live.dispatcher.mailbox import Mailbox


class SlowStore:
    """Takes one message at a time, each when the test says so."""

    def __init__(self) -> None:
        self.taken: list[ToDispatcher] = []
        self.at_once = self.most_at_once = 0
        self.gate = asyncio.Semaphore(0)

    async def receive(self, message: ToDispatcher) -> None:
        self.taken.append(message)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.gate.acquire()
        self.at_once -= 1


def messages(kinds: list[str]) -> list[ToDispatcher]:
    peer = PoolPeer("a", incarnation=1)
    made = {"heartbeat": peer.heartbeat, "refusal": lambda: peer.refuse(1), "leave": peer.leave}
    return [made[kind]() for kind in kinds]


def test_while_the_store_is_busy_the_newest_message_takes_the_place_of_older_ones() -> None:
    async def play() -> None:
        store = SlowStore()
        mailbox = Mailbox(store.receive)
        first, *rest = sent = messages(["refusal", "refusal", "heartbeat", "refusal", "refusal", "refusal"])
        mailbox.put(first)
        await asyncio.sleep(0)
        for message in rest:
            mailbox.put(message)
        for _ in sent:
            store.gate.release()
        await mailbox.flush()
        assert store.taken == [sent[0], sent[2], sent[-1]]

    asyncio.run(play())


@given(st.lists(st.tuples(st.sampled_from(["heartbeat", "refusal", "leave"]), st.integers(0, 3)), min_size=1))
def test_messages_are_delivered_in_order_one_at_a_time_and_the_last_always(steps: list[tuple[str, int]]) -> None:
    async def play() -> None:
        store = SlowStore()
        mailbox = Mailbox(store.receive)
        sent = messages([kind for kind, _ in steps])
        for message, (_, turns) in zip(sent, steps, strict=True):
            mailbox.put(message)
            for _ in range(turns):
                store.gate.release()
                await asyncio.sleep(0)
        for _ in sent:
            store.gate.release()
        await mailbox.flush()
        numbers = [message.sequence for message in store.taken]
        assert numbers == sorted(set(numbers))
        assert store.taken[-1] == sent[-1]
        assert store.most_at_once == 1
        if Kind.HEARTBEAT in {message.kind for message in sent}:
            assert any(message.kind is Kind.HEARTBEAT for message in store.taken)

    asyncio.run(play())
