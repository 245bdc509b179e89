"""Counts attempts at each message after a failure of the host or of the previous process (docs/adr/0021).

Input: whether the shard failed before, and the attempt counts in its hash. Output: whether a message is decided in a
step of its own, whether it may be retried, and which counts to remove with the step. Next: `host`.

    the shard's host failed in this process     each message alone
    the previous process ended uncleanly        each message alone, but results of marked effects together
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from collections.abc import Set as AbstractSet

from chronolet.kernel.step.input import Input
from chronolet.kernel.step.ledger import MAX_ATTEMPTS
from chronolet.kernel.step.suspects import PREFIX


class RetryCounts:
    """Attempt counts of one host's messages. Counting ends once enough messages have been decided without a failure."""

    def __init__(
        self,
        tried: Mapping[str, int],
        count_attempts: Callable[[Mapping[str, int]], None],
        *,
        careful: bool,
        careful_messages: int,
    ) -> None:
        """`tried`: the attempt counts in the shard's hash. `count_attempts` stores new counts there, in one round trip,
        before the attempts begin. `careful`: whether the shard's host failed in this process. `careful_messages`: see
        `Timing`.
        """
        messages = {message: count for message, count in tried.items() if not message.startswith(PREFIX)}
        self._tried = {message: count for message, count in messages.items() if count <= MAX_ATTEMPTS}
        self._given_up = messages.keys() - self._tried.keys()
        self._counted: Mapping[str, int] = {}
        self._exhausted: AbstractSet[str] = set()
        """Messages of the current turn that have no attempt left. Those that have one are in `_counted`."""
        self._count_attempts = count_attempts
        self._careful = careful
        self._most = careful_messages
        self._left = careful_messages if careful or self._tried else 0

    def count_next(self, messages: int) -> None:
        """Count attempts at the next `messages` messages, but at most `careful_messages`: one of them may have crashed
        the previous process.
        """
        self._left = max(self._left, min(messages, self._most))

    def counting(self) -> bool:
        """Whether attempts at the next message are counted."""
        return self._left > 0

    def alone(self, *, covered: bool) -> bool:
        """Whether to count an attempt at the next message and decide it in a step of its own. If several messages share
        a step, a failure is blamed on all of them. `covered`: whether an effect's mark already counts how often the
        process has ended because of this message.
        """
        return self._left > 0 and (self._careful or not covered)

    def begin(self, items: Sequence[Input], covered: int = 0) -> None:
        """Begin a turn: count one more attempt at each message that has one left, in one round trip. `covered`: number
        of other messages in the turn that are covered by an effect's mark.
        """
        self._left = max(0, self._left - len(items) - covered)
        attempts = {message: self._tried.pop(message, 0) + 1 for message in {item.identity() for item in items}}
        self._counted = {message: count for message, count in attempts.items() if count <= MAX_ATTEMPTS}
        self._exhausted = attempts.keys() - self._counted.keys()
        if self._counted:
            self._count_attempts(self._counted)

    def end(self) -> None:
        """End the turn: forget which of its messages were counted or exhausted."""
        self._counted, self._exhausted = {}, set()

    def is_exhausted(self, item: Input) -> bool:
        """Whether a message of this turn has already had all its attempts."""
        return bool(self._exhausted) and item.identity() in self._exhausted

    def was_given_up(self, item: Input) -> bool:
        """Whether a message was given up permanently, by this process or a previous one."""
        return bool(self._given_up) and item.identity() in self._given_up

    def give_up(self, item: Input) -> str:
        """Give up a message permanently: no process retries it. Returns its identity, under which the caller must store
        `GIVEN_UP`.
        """
        message = item.identity()
        self._given_up |= {message}
        return message

    def drop(self, outstanding: Container[str]) -> Sequence[str]:
        """Forget the messages that were given up permanently and are not in `outstanding`, because they cannot be
        delivered again. Returns the identities whose counts must be removed.
        """
        gone = [message for message in self._given_up if message not in outstanding]
        self._given_up -= set(gone)
        return gone

    def forgotten(self, item: Input) -> Sequence[str]:
        """Return the identities whose counts must be removed in the step in which this message succeeds."""
        if not self._counted or item.identity() not in self._counted:
            return ()
        forget = [item.identity()]
        if not self._left:
            # Otherwise the counts of signals that are never sent again would make every later start careful.
            forget += self._tried
            self._tried = {}
        return forget
