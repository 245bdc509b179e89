"""The in-memory store: behaviour that a test can only observe with a manual clock."""

import itertools

from chronolet.kernel.storage.memory_data import MemoryServer
from chronolet.kernel.storage.memory_store import MemoryStore
from chronolet.kernel.storage.store import Acquired, Committed, Step
from chronolet_schemas.envelope import START, Position, Record
from chronolet_schemas.keys import Shard

RECORD = Record("chore.Assigned@1", "chore/a", "", "chore#1", "", b"\x80")


def test_all_events_of_a_step_have_the_same_time_although_the_clock_advances() -> None:
    server = MemoryServer(clock=itertools.count(1000).__next__)
    store, shard = MemoryStore(server), Shard("chore")
    store.begin("r", {"chore": 1}, RECORD)
    acquired = store.acquire(shard, "", "p", 1)
    assert isinstance(acquired, Acquired)
    step = Step(
        shard=shard,
        token=acquired.head.token,
        version=0,
        step_id="s",
        schema=1,
        log_cursor=START,
        new_log_cursor=START,
        mail_cursor=START,
        new_mail_cursor=START,
        records=(RECORD, RECORD, RECORD),
    )
    answer = store.step(step)
    assert isinstance(answer, Committed)
    positions = [entry.position for entry in store.scan(START)][1:]
    assert positions == [Position(answer.at.milliseconds, n) for n in (2, 3, 4)]
