"""Tracks effects that were running when a process ended without a handover: one of them may have crashed it
(docs/adr/0021).

Input: the marks in a shard's hash. Output: how often a process has ended while an effect was running, and the marks to
write and to remove. A mark counts the processes in which an effect started and did not end. Marks exist only after an
unclean end. Next: `effects`, which runs suspects one at a time; `host`.

    process ends 0: marked, runs alongside others    1: alone    2: alone, after a pause    3: given up
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from chronolet.kernel.decider import Effect
from chronolet.kernel.step.ledger import MAX_ATTEMPTS

PREFIX = "effect:"
PAUSED_FROM = 2
"""Number of process ends after which an effect is paused before it is restarted."""
GIVEN_UP = MAX_ATTEMPTS + 1
"""The count that marks an effect or message as dead-lettered."""


def mark_of(key: str, effect: Effect) -> str:
    """Return the effect's mark: the key in the shard's hash under which another process recognizes it."""
    return f"{PREFIX}{type(effect).__name__}:{key}:{effect.subject}:{effect.intent}"


class Suspects:
    """The marks of one shard's effects, during the life of one of its hosts."""

    def __init__(
        self, attempts: Mapping[str, int], count_attempts: Callable[[Mapping[str, int]], None], *, unclean: bool
    ) -> None:
        """`unclean`: whether the former owner ended without a handover. If not, its end is not counted."""
        last = 0 if unclean else 1
        marks = {mark: count for mark, count in attempts.items() if mark.startswith(PREFIX)}
        self._ended = {mark: count if count >= GIVEN_UP else max(0, count - last) for mark, count in marks.items()}
        self._begun: set[str] = set()
        self._count_attempts = count_attempts

    def known(self) -> bool:
        """Whether the shard has any marks."""
        return bool(self._ended)

    def ended(self, mark: str) -> int:
        """Return the number of processes that ended while this effect was running."""
        return self._ended.get(mark, 0)

    def begin(self, marks: Sequence[str]) -> None:
        """Mark effects that are about to start. Returns once the server has stored the marks."""
        counts = {mark: self.ended(mark) + 1 for mark in marks if mark not in self._begun}
        if counts:
            self._count_attempts(counts)
            self._begun |= counts.keys()
            self._ended |= {mark: count - 1 for mark, count in counts.items()}

    def covers(self, mark: str) -> bool:
        """Whether an end of the process would be blamed on this effect. If so, its result needs no count of its own."""
        return mark in self._begun and self._ended[mark] < MAX_ATTEMPTS

    def clear(self, mark: str) -> Sequence[str]:
        """Remove the mark of an effect that has ended without ending the process. Returns the mark if it must also be
        removed from the shard's hash.
        """
        if mark not in self._ended or self._ended[mark] >= MAX_ATTEMPTS:
            return ()
        del self._ended[mark]
        self._begun.discard(mark)
        return (mark,)

    def give_up(self, mark: str) -> str:
        """Give up an effect: it is sent to the dead letters, and no process starts it again. Returns its mark, under
        which the caller must store `GIVEN_UP`.
        """
        self._ended[mark] = GIVEN_UP
        return mark

    def was_given_up(self, mark: str) -> bool:
        """Whether the effect is already in the dead letters."""
        return self._ended.get(mark, 0) >= GIVEN_UP

    def drop(self, outstanding: Container[str]) -> Sequence[str]:
        """Forget the effects that are no longer outstanding. Returns their marks, which must be removed from the
        shard's hash.
        """
        gone = [mark for mark in self._ended if mark not in outstanding]
        for mark in gone:
            del self._ended[mark]
        return gone
