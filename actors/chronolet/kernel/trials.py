"""How a host steps after a failure, its own or of the process before: one message at a time, each with its tries
counted (DESIGN 3.7, docs/adr/0021).

Comes in: whether the shard failed before, and the tries that its hash tells of. Goes out: whether a message may be
tried once more, and which counts may be forgotten with the step. Next: `host`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from chronolet.kernel.ledger import TRIES, Input
from chronolet.kernel.suspects import PREFIX

CAREFUL_MESSAGES = 300
"""After so many messages without a failure, a host folds everything that waits into one step again."""


class Trials:
    """The messages that a host takes one by one, until so many of them went well."""

    def __init__(self, tried: Mapping[str, int], count_try: Callable[[str, int], None], *, careful: bool) -> None:
        """`count_try` notes, where a restart finds it, which try of a message begins now."""
        messages = {message: count for message, count in tried.items() if not message.startswith(PREFIX)}
        self._tried = {message: count for message, count in messages.items() if count <= TRIES}
        self._given_up = messages.keys() - self._tried.keys()
        self._count_try = count_try
        self._left = CAREFUL_MESSAGES if careful or self._tried else 0

    def take_care(self, messages: int) -> None:
        """Take at least so many messages by themselves: one of them may have ended the process before this one."""
        self._left = max(self._left, min(messages, CAREFUL_MESSAGES))

    def going_on(self) -> bool:
        """Whether the next message is to be taken by itself, and counted."""
        return self._left > 0

    def begin(self, item: Input) -> bool:
        """Count one more try of a message, unless it has had all of them."""
        self._left -= 1
        message = item.identity()
        count = self._tried.pop(message, 0) + 1
        if count > TRIES:
            return False
        self._count_try(message, count)
        return True

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
        """The counts that go with the step in which a message went well."""
        forget = [item.identity()]
        if not self._left:
            # Tries of signals that did not come again would make every later start a careful one.
            forget += self._tried
            self._tried = {}
        return forget
