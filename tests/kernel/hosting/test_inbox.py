"""The inbox: no item is lost and no wake-up is missed, whenever and on whichever thread an item is added."""

import threading

import pykka

from chronolet.kernel.host.inbox import Inbox
from tests.support import scratch


class Taker(pykka.ThreadingActor):
    """An owner of an inbox, like the host: it is woken, takes some items, and wakes itself if more are waiting."""

    use_daemon_thread = True

    def __init__(self, inbox: Inbox[int]) -> None:
        super().__init__()
        self.inbox = inbox
        self.taken: list[int] = []
        self.wakes = 0

    def on_start(self) -> None:
        self.inbox.open(lambda: self.actor_ref.tell("wake"))

    def on_receive(self, _message: str) -> None:
        self.wakes += 1
        self.taken += self.inbox.take(7)
        if self.inbox.rearm():
            self.actor_ref.tell("wake")


def test_every_item_is_taken_in_order_whichever_thread_adds_it() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.put(-1)
    owner = Taker.start(inbox)
    actor = owner._actor_weakref()
    assert actor is not None

    def put(start: int) -> None:
        for number in range(start, start + 3000):
            inbox.put(number)

    threads = [threading.Thread(target=put, args=(each * 3000,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scratch.wait_until(lambda: len(actor.taken) == 12_001, "all items")
    assert sorted(actor.taken) == list(range(-1, 12_000))
    for each in range(4):
        mine = [number for number in actor.taken if each * 3000 <= number < (each + 1) * 3000]
        assert mine == sorted(mine)
    owner.stop()


def test_nudges_and_items_wake_the_owner_once_per_turn() -> None:
    inbox: Inbox[int] = Inbox()
    woken: list[None] = []
    inbox.open(lambda: woken.append(None))
    inbox.nudge()
    inbox.put(1)
    assert len(woken) == 1
    assert inbox.take(5) == [1]
    assert not inbox.rearm()
    inbox.put(2)
    assert len(woken) == 2
    assert inbox.rearm()


def test_a_nudge_during_a_turn_leads_to_another_turn() -> None:
    """The turn may already be past what the nudge is about, such as a shard that is to be handed over."""
    inbox: Inbox[int] = Inbox()
    woken: list[None] = []
    inbox.open(lambda: woken.append(None))
    inbox.put(1)
    assert inbox.take(5) == [1]
    inbox.nudge()
    assert len(woken) == 1
    assert inbox.rearm(), "the owner wakes itself"
    assert inbox.take(5) == []
    assert not inbox.rearm()
    inbox.nudge()
    assert len(woken) == 2
