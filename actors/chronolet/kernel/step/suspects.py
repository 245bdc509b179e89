"""Effects that ran when a process ended without handing over: one of them may have ended it (docs/adr/0021).

Comes in: the marks of a shard's hash. Goes out: how often a process ended while an effect ran, and marks to be written
and removed. A mark counts the processes in which an effect was begun and did not end. Only after an unclean end are
there marks at all. Next: `effects`, which begins what is suspected by itself; `host`.

    ended 0: marked, and run beside others    1: alone    2: alone, after a pause    3: given up
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from chronolet.kernel.decider import Effect
from chronolet.kernel.step.ledger import TRIES

PREFIX = "effect:"
PAUSE_SECONDS = 10.0
"""Before an effect that ran at two ends is begun again: who kills this process again and again hits the pause."""
BLAME_SECONDS = 60.0
"""A process that ends later after an effect's begin did not end of it."""
PAUSED_FROM = 2
"""So many ends."""
GIVEN_UP = TRIES + 1
"""The count of what is in the dead letters."""


def mark_of(key: str, effect: Effect) -> str:
    """What names an effect when it is begun again by another process."""
    return f"{PREFIX}{type(effect).__name__}:{key}:{effect.subject}:{effect.intent}"


class Suspects:
    """The marks of one shard, in one life of its host."""

    def __init__(
        self, tried: Mapping[str, int], count_tries: Callable[[Mapping[str, int]], None], *, unclean: bool
    ) -> None:
        """`unclean`: the former owner ended without handing over. Else its last life does not count."""
        last = 0 if unclean else 1
        marks = {mark: count for mark, count in tried.items() if mark.startswith(PREFIX)}
        self._ended = {mark: count if count >= GIVEN_UP else max(0, count - last) for mark, count in marks.items()}
        self._begun: set[str] = set()
        self._count_tries = count_tries

    def known(self) -> bool:
        """Whether there is any."""
        return bool(self._ended)

    def ended(self, mark: str) -> int:
        """How many processes ended while this effect ran."""
        return self._ended.get(mark, 0)

    def begin(self, marks: Sequence[str]) -> None:
        """These are begun now; returns when that is on the server's disk."""
        counts = {mark: self.ended(mark) + 1 for mark in marks if mark not in self._begun}
        if counts:
            self._count_tries(counts)
            self._begun |= counts.keys()
            self._ended |= {mark: count - 1 for mark, count in counts.items()}

    def covers(self, mark: str) -> bool:
        """Whether an end of the process would be blamed on this effect: then its answer needs no mark of its own."""
        return mark in self._begun and self._ended[mark] < TRIES

    def over(self, mark: str) -> Sequence[str]:
        """It ended, and the process lives: the mark to be removed, if there is one."""
        if mark not in self._ended or self._ended[mark] >= TRIES:
            return ()
        del self._ended[mark]
        self._begun.discard(mark)
        return (mark,)

    def give_up(self, mark: str) -> str:
        """It goes to the dead letters, and is not begun again; the mark, to be noted as `GIVEN_UP`."""
        self._ended[mark] = GIVEN_UP
        return mark

    def was_given_up(self, mark: str) -> bool:
        """Whether it is in the dead letters already."""
        return self._ended.get(mark, 0) >= GIVEN_UP

    def drop(self, wanted: Container[str]) -> Sequence[str]:
        """Marks of what nobody wants any more."""
        gone = [mark for mark in self._ended if mark not in wanted]
        for mark in gone:
            del self._ended[mark]
        return gone
