"""Reads each log entry as it appears, and counts the entries that the server has lost.

Input: the log. Output: the number of inputs consumed so far, for which tests can wait; the entries; after a loss, the
check that the remaining log is a prefix of the entries read before. Next: the tests, which use it to pace their kills;
`guarantees`, which checks the entries.
"""

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import START, Entry
from tests.kernel import mirror, tally
from tests.support.patience import PATIENT
from tests.support.scratch import hang_limit

ADDED = registry.type_of(tally.Added)
SEEN = registry.type_of(mirror.Seen)


class Gate:
    """A lock with which other threads pause one busy thread: a thread that closes the gate gets the lock next.

    The busy thread does each piece of work inside `passing`; other threads pause it with `closed`.
    """

    def __init__(self) -> None:
        self._turnstile = threading.Lock()
        self._lock = threading.Lock()

    @contextmanager
    def passing(self) -> Iterator[None]:
        with self._turnstile:
            pass
        with self._lock:
            yield

    @contextmanager
    def closed(self) -> Iterator[None]:
        with self._turnstile, self._lock:
            yield


class Watcher:
    """Reads the log on its own thread. A closed `gate` pauses it."""

    def __init__(self, url: str, node: str) -> None:
        self.entries: list[Entry] = []
        self.counts: Counter[str] = Counter()
        self.gate = Gate()
        self._store = RedisStore(url, node, timeouts=PATIENT)
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._store.close()

    def has_room(self, sent: int, window: int = 400) -> bool:
        """Return whether fewer than `window` of the `sent` commands are waiting to be consumed. If there are more, wait
        up to a tenth of a second for that to change.
        """
        with self._changed:
            return self._changed.wait_for(lambda: sent - self.counts[ADDED] < window, timeout=0.1)

    def wait_for_more(self, least: int, most: int, seconds: float = 30) -> None:
        """Wait until a random number of further inputs, from `least` to `most`, is consumed."""
        with self._changed:
            wanted = self.counts[ADDED] + random.randint(least, most)
            if not self._changed.wait_for(lambda: self.counts[ADDED] >= wanted, timeout=hang_limit(seconds)):
                raise TimeoutError(f"no {wanted} inputs after {hang_limit(seconds):.0f} s, only {dict(self.counts)}")

    def wait_for(self, inputs: int, seconds: float = 60) -> None:
        """Wait until `inputs` inputs are consumed and the mirror has seen them."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: min(self.counts[ADDED], self.counts[SEEN]) >= inputs, timeout=hang_limit(seconds)
            )
        assert done, f"waited {hang_limit(seconds):.0f} s for {inputs} inputs; there are {dict(self.counts)}"

    def answered(self) -> dict[str, int]:
        """Return the last number of each key in the log."""
        numbers: dict[str, int] = {}
        for entry in self.entries:
            if entry.type == ADDED:
                added = codec.decode(entry.type, entry.data, tally.Added)
                numbers[added.key] = added.number
        return numbers

    def compare(self) -> int:
        """Check that the entries that the server has lost are the last ones, and return their number. Call this after a
        restart, with the gate closed.
        """
        now = list(self._store.scan(START))
        common = 0
        while common < min(len(now), len(self.entries)) and now[common] == self.entries[common]:
            common += 1
        lost = set(self.entries[common:])
        assert not lost & set(now), "entries were lost before others that remain"
        with self._changed:
            self.entries = now
            self.counts = Counter(entry.type for entry in now)
        return len(lost)

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self.gate.passing():
                at = self.entries[-1].position if self.entries else START
                try:
                    found = self._store.wait(at, {}, 1000, 20).log
                except (StoreUnreachable, StoreBroken):
                    continue
                with self._changed:
                    self.entries += found
                    self.counts.update(entry.type for entry in found)
                    self._changed.notify_all()
