"""Sends commands with explicit request ids, in order per key. Resends commands that got no reply or were lost.

Input: whether there is room for more commands and, after a loss, the last number of each key in the log, both from the
watcher. Output: commands, and their number per key. The sender has one thread, which a closed `gate` pauses. Next:
`guarantees`, which compares the commands sent with their outcome.
"""

import threading
from collections.abc import Callable

from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import StoreBroken, StoreUnreachable
from chronolet_schemas import codec, registry
from chronolet_schemas.keys import shard_for
from tests.kernel import tally
from tests.kernel.kill.watcher import Gate
from tests.support.patience import PATIENT

ADD = registry.type_of(tally.Add)


class Sender:
    """Sends commands to all its keys in turn until `finish` is called."""

    def __init__(self, url: str, node: str, keys: list[str], has_room: Callable[[int], bool]) -> None:
        self.sent = dict.fromkeys(keys, 0)
        self.doubts = 0
        self._in_doubt: dict[str, int] = {}
        """For each key whose last command got no reply: the command's `rest_after`."""
        self.sent_again = 0
        self.gate = Gate()
        self._store = RedisStore(url, node, timeouts=PATIENT)
        self._has_room = has_room
        self._finishing = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        self._thread.start()

    @property
    def total(self) -> int:
        return sum(self.sent.values())

    def finish(self) -> None:
        """Stop after one last command to each key. That command arms a timer. Raises the error that ended the sender,
        if any.
        """
        self._finishing.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        self._store.close()

    def send_again(self, answered: dict[str, int]) -> None:
        """Resend, in order, all commands that the log lacks. `answered`: the last number of each key in the log. Call
        this with the `gate` closed, after a loss.
        """
        for key, count in self.sent.items():
            for number in range(answered.get(key, 0) + 1, count + 1):
                self.sent_again += self._send_until_answered(key, number) == "sent"

    def _run(self) -> None:
        try:
            while not self._finishing.is_set():
                for key in self.sent:
                    if self._has_room(self.total):
                        self._next(key, rest_after=20 if self.sent[key] % 7 == 6 else 0)
            for key in self.sent:
                last = self.sent[key] + 1 + (key in self._in_doubt)
                while self.sent[key] < last:
                    self._next(key, rest_after=1)
        except BaseException as error:  # noqa: BLE001 - raised again by finish
            self._error = error

    def _next(self, key: str, rest_after: int) -> None:
        with self.gate.passing():
            number = self.sent[key] + 1
            rest_after = self._in_doubt.pop(key, rest_after)
            if self._attempt(key, number, rest_after) is None:
                self.doubts += 1
                self._in_doubt[key] = rest_after
                return  # resend the same command in the next round: a loss may have to be examined first
            self.sent[key] = number

    def _send_until_answered(self, key: str, number: int) -> str:
        while (answer := self._attempt(key, number, 1 if number == self.sent[key] else 0)) is None:
            self.doubts += 1
        return answer

    def _attempt(self, key: str, number: int, rest_after: int) -> str | None:
        add = tally.Add(request=f"{key}/{number}", key=key, number=number, rest_after=rest_after)
        try:
            count = self._store.layout().counts["tally"]
            shard = shard_for("tally", count, key)
            answer = self._store.send(shard, ADD, f"tally/{key}", add.request, codec.encode(add), of=count)
        except (StoreUnreachable, StoreBroken, KeyError):  # KeyError: the server is still empty
            return None
        return None if answer in ("busy", "moved") else answer
