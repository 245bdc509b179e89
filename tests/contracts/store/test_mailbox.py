"""The contract of the store: commands in mailboxes."""

import pytest

from chronolet.kernel.storage.store import (
    Store,
    StoreBroken,
)
from chronolet_schemas.envelope import START, Position
from chronolet_schemas.keys import Shard
from tests.contracts.store.support import OTHER, SHARD, commit, take


def mailed(store: Store, shard: Shard = SHARD, after: Position = START) -> list[str]:
    return [mail.request for mail in store.wait(store.last(), {shard: after}, 20_000, 0).mail.get(shard, ())]


def test_a_request_is_accepted_once_even_after_it_was_consumed(begun: Store) -> None:
    token = take(begun)
    assert begun.send(SHARD, "t@1", "e", "r1", b"") == "sent"
    assert begun.send(SHARD, "t@1", "e", "r1", b"") == "duplicate"
    assert begun.send(OTHER, "t@1", "e", "r1", b"") == "sent"
    assert begun.send(SHARD, "t@1", "e", "r2", b"") == "sent"
    mails = begun.wait(begun.last(), {SHARD: START}, 10, 0).mail[SHARD]
    assert [mail.request for mail in mails] == ["r1", "r2"]
    assert mails[0].id < mails[1].id
    commit(begun, token, 1, new_mail_cursor=mails[1].id)
    assert begun.send(SHARD, "t@1", "e", "r1", b"") == "duplicate"
    assert mailed(begun, after=mails[1].id) == []
    assert begun.send(SHARD, "t@1", "e", "r3", b"") == "sent"
    assert mailed(begun, after=mails[1].id) == ["r3"]


def test_waiting_commands_are_read_in_pages(begun: Store) -> None:
    assert begun.read_mail(SHARD, START, 10) == []
    for number in range(5):
        begun.send(SHARD, "t@1", "e", f"r{number}", b"\x00")
    first = begun.read_mail(SHARD, START, 3)
    assert list(first) == list(begun.wait(begun.last(), {SHARD: START}, 3, 0).mail[SHARD])
    assert [mail.request for mail in begun.read_mail(SHARD, first[-1].id, 3)] == ["r3", "r4"]


def test_a_command_without_request_id_is_refused(begun: Store) -> None:
    with pytest.raises(StoreBroken):
        begun.send(SHARD, "t@1", "e", "", b"")


def test_a_step_trims_the_mailbox_to_its_cursor(begun: Store) -> None:
    token = take(begun)
    for number in range(5):
        begun.send(SHARD, "t@1", "e", f"r{number}", b"")
    mails = begun.wait(begun.last(), {SHARD: START}, 10, 0).mail[SHARD]
    commit(begun, token, 0, new_mail_cursor=mails[2].id)
    assert mailed(begun, after=mails[2].id) == ["r3", "r4"]
    assert mailed(begun) == ["r2", "r3", "r4"]


def test_a_full_mailbox_is_busy_and_consumed_entries_do_not_count(begun: Store) -> None:
    token = take(begun)
    for number in range(10_000):
        assert begun.send(SHARD, "t@1", "e", f"r{number}", b"") == "sent"
    assert begun.send(SHARD, "t@1", "e", "one more", b"") == "busy"
    assert begun.send(SHARD, "t@1", "e", "r0", b"") == "duplicate"
    first = begun.wait(begun.last(), {SHARD: START}, 1, 0).mail[SHARD][0]
    commit(begun, token, 0, new_mail_cursor=first.id)
    assert begun.send(SHARD, "t@1", "e", "one more", b"") == "sent"
    assert begun.send(SHARD, "t@1", "e", "and another", b"") == "busy"
