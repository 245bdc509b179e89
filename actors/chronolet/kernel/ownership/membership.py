"""A process's entry in the node's list of members: its name, and what it can host.

Input: the name, the store, the life lock. Output: an entry that no other live process has, kept up to date; NameTaken
if another process has the name. Next: `process`, which joins before it acquires its lease; `sharing`.

A name is free if it is not listed, if its process has left or has lost a shard to a takeover, if this machine's life
lock proves that the listed process is dead, or if the process's renewal counter has not moved for a time-to-live. So a
restarted process gets its own name back immediately on the machine that has its life lock, and after a time-to-live on
any other machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from chronolet.kernel.ownership.life_lock import LifeLock, NameTaken
from chronolet.kernel.ownership.watch import CounterWatch
from chronolet.kernel.storage.members import Member, Survey
from chronolet.kernel.storage.store import Store

LOOKS_IN_TTL = 10
RENEWALS_APART = 1_000_000
"""The distance between a process's renewal numbers and those of the former process of the same name. The former process
may still attempt a few renewals if it was only paused; no process must mistake an old number for a new one.
"""


class Membership:
    """The entry of one process in the list of members. `lock`: the process's life lock, if it has one."""

    def __init__(
        self,
        store: Store,
        process: str,
        *,
        instance: str,
        host: str,
        lock: LifeLock | None,
        lease_milliseconds: int,
    ) -> None:
        self.process = process
        # Without kinds, until it is known which ones the process can host here.
        self.entry = Member(instance=instance, kinds=(), host=host)
        self._base = 0
        """All renewal numbers of this process are above this number."""
        self._store = store
        self._lock = lock
        self._seconds = lease_milliseconds / 1000
        self._watch = CounterWatch(self._seconds)

    def join(self, wait: Callable[[float], bool]) -> int:
        """Add the process to the list of members. Returns the number that all its renewal numbers must exceed.

        `wait`: waits for the given number of seconds; if it returns True, the process should end, and this method
        returns 0. Raises NameTaken as soon as the listed process is known to be alive.
        """
        first: str | None = None
        while True:
            survey, is_dead = self._look()
            seen, counter = survey.members.get(self.process), survey.counters.get(self.process, "")
            if is_dead or not counter or self._was_here(seen):
                if self._store.join(self.process, self.entry, seen=seen, counter=counter):
                    self._base = _number(counter) + RENEWALS_APART
                    return self._base
            elif first not in (None, counter):
                raise NameTaken(self._taken(seen))
            else:
                first = counter
            if wait(self._seconds / LOOKS_IN_TTL):
                return 0

    def update(self, survey: Survey, *, kinds: Collection[str], refused: Collection[str], leaving: bool) -> None:
        """Publish the entry if the published one is missing or differs. Raises NameTaken if another process has taken
        the name, which is possible once this process has not renewed its lease for a time-to-live. The other process is
        recognized by renewal numbers far above those of this process; the entry of a former process, found in a
        restored server, comes with lower numbers.
        """
        found = survey.members.get(self.process)
        taken = _number(survey.counters.get(self.process, "")) > self._base + RENEWALS_APART // 2
        if found is not None and found.instance != self.entry.instance and taken:
            raise NameTaken(self._taken(found))
        self.entry = msgspec.structs.replace(
            self.entry, kinds=tuple(sorted(kinds)), refused=tuple(sorted(refused)), leaving=leaving
        )
        if found != self.entry:
            self._store.publish(self.process, self.entry)

    def _look(self) -> tuple[Survey, bool]:
        surveys: list[Survey] = []

        def counters() -> dict[str, str]:
            surveys.append(self._store.survey(()))
            return dict(surveys[0].counters)

        dead = self._watch.read(counters, [self.process])
        return surveys[0], self.process in dead

    def _was_here(self, seen: Member | None) -> bool:
        """Whether the listed process held this process's life lock, and has died."""
        return seen is not None and self._lock is not None and self._lock.former == seen.instance

    def _taken(self, other: Member | None) -> str:
        where = f" on host {other.host}" if other is not None and other.host else ""
        return (
            f"process name {self.process!r} is taken: another process of this node renews its lease under that"
            f" name{where}; stop that process, or give this one another --process-name"
        )


def _number(counter: str) -> int:
    return int(counter) if counter.isdigit() else 0
