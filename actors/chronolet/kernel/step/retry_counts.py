"""How a host steps after a failure, its own or of the process before: each message's tries are counted in the shard's
hash (DESIGN 3.7, docs/adr/0021).

Comes in: whether the shard failed before, and the tries that its hash holds. Goes out: whether a message is decided in
a step of its own, whether it may be tried once more, and which counts may be forgotten with the step. Next: `host`.

    the shard's host failed in this process     each message alone
    the process before ended uncleanly          each message alone, but answers of marked effects together
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from collections.abc import Set as AbstractSet

from chronolet.kernel.step.ledger import TRIES, Input
from chronolet.kernel.step.suspects import PREFIX

CAREFUL_MESSAGES = 300
"""After so many messages without a failure, a host counts no tries any more."""


class RetryCounts:
    """The messages whose tries a host counts, until so many of them went well."""

    def __init__(
        self, tried: Mapping[str, int], count_tries: Callable[[Mapping[str, int]], None], *, careful: bool
    ) -> None:
        """`count_tries` notes, where a restart finds it, which try of each message begins now: in one round trip.
        `careful`: the shard's host failed in this process.
        """
        messages = {message: count for message, count in tried.items() if not message.startswith(PREFIX)}
        self._tried = {message: count for message, count in messages.items() if count <= TRIES}
        self._given_up = messages.keys() - self._tried.keys()
        self._counted: Mapping[str, int] = {}
        self._exhausted: AbstractSet[str] = set()
        """Both of the turn at hand; the latter have had all tries."""
        self._count_tries = count_tries
        self._careful = careful
        self._left = CAREFUL_MESSAGES if careful or self._tried else 0

    def take_care(self, messages: int) -> None:
        """Count the tries of at least so many messages: one of them may have ended the process before this one."""
        self._left = max(self._left, min(messages, CAREFUL_MESSAGES))

    def going_on(self) -> bool:
        """Whether the tries of the next message are to be counted."""
        return self._left > 0

    def alone(self, *, covered: bool) -> bool:
        """Whether the next message is to be counted and decided in a step of its own: what is noted next to others is
        blamed for their end. `covered`: the mark of an effect counts the end of the process while it is decided.
        """
        return self._left > 0 and (self._careful or not covered)

    def begin(self, items: Sequence[Input], covered: int = 0) -> None:
        """A turn begins: count in one round trip one more try of each message, unless it has had all. `covered`: so
        many more messages of the turn are marked otherwise.
        """
        self._left = max(0, self._left - len(items) - covered)
        tries = {message: self._tried.pop(message, 0) + 1 for message in {item.identity() for item in items}}
        self._counted = {message: count for message, count in tries.items() if count <= TRIES}
        self._exhausted = tries.keys() - self._counted.keys()
        if self._counted:
            self._count_tries(self._counted)

    def end(self) -> None:
        """The turn is over."""
        self._counted, self._exhausted = {}, set()

    def is_exhausted(self, item: Input) -> bool:
        """Whether a message of this turn has had all its tries before."""
        return bool(self._exhausted) and item.identity() in self._exhausted

    def was_given_up(self, item: Input) -> bool:
        """Whether it was given up for good, here or by a process before."""
        return bool(self._given_up) and item.identity() in self._given_up

    def give_up(self, item: Input) -> str:
        """Not to be tried again, by any process; the identity, to be noted as such."""
        message = item.identity()
        self._given_up |= {message}
        return message

    def drop(self, wanted: Container[str]) -> Sequence[str]:
        """Counts of what was given up for good and cannot come again."""
        gone = [message for message in self._given_up if message not in wanted]
        self._given_up -= set(gone)
        return gone

    def forgotten(self, item: Input) -> Sequence[str]:
        """The counts that go with the step in which a message of this turn goes well."""
        if not self._counted or item.identity() not in self._counted:
            return ()
        forget = [item.identity()]
        if not self._left:
            # Tries of signals that did not come again would make every later start a careful one.
            forget += self._tried
            self._tried = {}
        return forget
