"""Prepares a change of a kind's shard count: folds the states of all former shards and divides them among the new ones.

Input: all former shards, acquired by this process; the history. Output: a `Reshard`, complete for one atomic call of
the store. Nobody decides while a process prepares: it owns the shards and runs no host. Next: `changes`.

What belongs to a shard, and what becomes of it:

    states            folded up to the end of the log, and written as snapshots of the new shards
    log cursors       the new shards begin at the lowest; a table keeps all of them (`step.inherited`)
    waiting commands  moved to the mailboxes of the new shards, in order; all request ids stay known to all of them
    attempt counts    kept by every new shard, except those of commands, whose ids change
    timers, effects   derived from the states, as after any takeover
    epoch, version    higher than those of the former shards, and of earlier shards with the new shards' names
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from chronolet.kernel.host.host_handle import Recovered
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.recovery import History, Recovery
from chronolet.kernel.ownership.claims import Claim
from chronolet.kernel.step.inherited import still_needed
from chronolet.kernel.step.routing import Router
from chronolet.kernel.step.snapshots import EntityImage, encode_states, snapshot_format
from chronolet.kernel.storage.layout import Move, Reshard
from chronolet.kernel.storage.store import Head, Store
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import Event, Mail, Record
from chronolet_schemas.keys import Shard

MAILS_AT_ONCE = 1_000


class NotReady(Exception):  # noqa: N818 - the condition's name
    """The former shards cannot be divided now. The text says why, and what to do."""


class Wanted(NamedTuple):
    """The change to make: a kind of a node, its shard counts before and after, and the process that makes it."""

    node: str
    process: str
    kind: Kind[Any]
    before: int
    after: int


class Preparation:
    """Prepares one change of a kind's shard count."""

    def __init__(self, store: Store, history: History, wanted: Wanted, claims: Mapping[Shard, Claim]) -> None:
        """`claims`: all former shards. Raises NotReady; HistoryMissing if their history cannot be read here."""
        name = wanted.kind.name
        self._store = store
        self._wanted = wanted
        self._claims = claims
        self._before = Router({name: wanted.kind}, {name: wanted.before})
        self._after = Router({name: wanted.kind}, {name: wanted.after})
        recovery = Recovery({name: wanted.kind}, self._before, store, history)
        held = {shard: (claim.head.token, claim.head) for shard, claim in claims.items()}
        recovered = recovery.run(held, frozenset())
        self._read_to = max(each.read_to for each in recovered.values())
        self._states = self._divided(recovered)

    def change(self) -> Reshard:
        """Return the change, including the commands that wait now. Call this again if more commands have arrived."""
        wanted, heads = self._wanted, [claim.head for claim in self._claims.values()]
        mails = {shard: self._mails(shard) for shard in self._claims}
        cursor = min(head.log_cursor for head in heads)
        moves = [
            Move(shard, mail.id, self._after.owner_of_mail(shard.kind, mail))
            for shard, found in mails.items()
            for mail in found
        ]
        return Reshard(
            kind=wanted.kind.name,
            before=wanted.before,
            after=wanted.after,
            tokens={shard: claim.head.token for shard, claim in self._claims.items()},
            mail_ends={s: found[-1].id if found else self._claims[s].head.mail_cursor for s, found in mails.items()},
            moves=moves,
            read_to=self._read_to,
            format=snapshot_format(wanted.kind, wanted.after),
            states=self._states,
            log_cursor=cursor,
            decided=still_needed((tuple(head.log_cursor for head in heads), *heads[0].decided), cursor),
            attempts=_attempts(heads),
            unclean=any(claim.unclean for claim in self._claims.values()),
            schema=registry.RESHARDED,
            records=self._records(heads, len(moves)),
        )

    def _divided(self, recovered: Mapping[Shard, Recovered]) -> Mapping[Shard, bytes]:
        """Return the encoded states of each new shard."""
        name = self._wanted.kind.name
        divided: dict[Shard, dict[str, EntityImage[Any]]] = {shard: {} for shard in self._after.shards_of(name)}
        for shard, each in recovered.items():
            if each.notes:  # the snapshot would hide the entry from the host that has to report it
                raise NotReady(
                    f"{shard} has a log entry that cannot be decoded and that no host has reported yet:"
                    " start a process that hosts it, then request the change again"
                )
            for key, image in each.ledger.images().items():
                divided[self._after.shard_for(name, key)][key] = image
        return {shard: encode_states(images) for shard, images in divided.items()}

    def _mails(self, shard: Shard) -> Sequence[Mail]:
        mails: list[Mail] = []
        after = self._claims[shard].head.mail_cursor
        while page := self._store.read_mail(shard, mails[-1].id if mails else after, MAILS_AT_ONCE):
            mails += page
        return mails

    def _records(self, heads: Sequence[Head], moved: int) -> tuple[Record, ...]:
        wanted = self._wanted
        taken = [(shard, claim.former) for shard, claim in self._claims.items() if claim.former is not None]
        changed = kernel.KindResharded(
            kind=wanted.kind.name,
            before=wanted.before,
            after=wanted.after,
            cursors=[str(head.log_cursor) for head in heads],
            moved_commands=moved,
        )
        actor = f"process/{wanted.process}"
        return (
            *(record_of(event, f"shard/{shard}", actor) for shard, event in taken),
            record_of(changed, f"node/{wanted.node}", actor),
        )


def record_of(event: Event, entity: str, actor: str) -> Record:
    """Return the log record of an event that a process writes itself, without a host."""
    return Record(registry.type_of(type(event)), entity, event.subject(), actor, "", codec.encode(event))


def _attempts(heads: Sequence[Head]) -> Mapping[str, int]:
    """Return the highest count of each message and effect. Commands get new ids, so their counts are dropped."""
    counts: dict[str, int] = {}
    for head in heads:
        for message, count in head.attempts.items():
            if not message.startswith("mailbox:"):
                counts[message] = max(count, counts.get(message, 0))
    return counts
