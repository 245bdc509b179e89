"""Commits steps: each is encoded once, and resent byte for byte until there is a reply or the time is up.

Input: a `Step`. Output: `Committed`, `Fenced`, `Conflict`. Resending is idempotent: the Redis function compares version
and cursors, and replies CONFLICT with the id of the last committed step. If that is the id of the resent step, `commit`
returns `Committed`. Next: the host.
"""

from __future__ import annotations

import threading
import time

from chronolet.kernel.storage.redis import library
from chronolet.kernel.storage.redis.connection import Channel
from chronolet.kernel.storage.redis.errors import ConnectionLost, LoginRefused, ResponseError, no_function, translated
from chronolet.kernel.storage.redis.replies import position, text
from chronolet.kernel.storage.store import Committed, Conflict, Fenced, Step, StoreBroken, StoreUnreachable
from chronolet_schemas.keys import Keys

_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5


def packed(channel: Channel, keys: Keys, step: Step) -> bytes:
    """Return the encoded call that commits a step."""
    # A step without events needs almost no memory, and consuming messages frees memory.
    full = step.even_if_full or not (step.records or step.dead)
    arguments: list[str | bytes | int] = [
        "FCALL",
        "chronolet_step_full_2" if full else "chronolet_step_2",
        4,
        keys.log,
        keys.shard(step.shard),
        keys.mailbox(step.shard),
        keys.dead,
        step.token,
        step.version,
        step.step_id,
        step.schema,
        str(step.log_cursor),
        str(step.new_log_cursor),
        str(step.mail_cursor),
        str(step.new_mail_cursor),
        len(step.records),
        len(step.dead),
        len(step.forget_attempts),
    ]
    for record in step.records:
        arguments += record
    for letter in step.dead:
        arguments += (letter.source, letter.at, letter.type, letter.entity, letter.data, letter.error)
    arguments += step.forget_attempts
    return channel.pack(*arguments)


class Commits:
    """Sends steps over one connection."""

    def __init__(self, channel: Channel, keys: Keys, patience_seconds: float) -> None:
        self._channel = channel
        self._keys = keys
        self._patience = patience_seconds
        self._closing = threading.Event()

    def close(self) -> None:
        """Make `commit` give up if it is resending a step."""
        self._closing.set()

    def commit(self, step: Step) -> Committed | Fenced | Conflict:
        """Commit a step. Raises StoreUnreachable if there is no reply in time: the step may have been committed, so
        resend the same step or reload the shard. A refused login or step raises StoreUnreachable or StoreBroken
        immediately.
        """
        call = packed(self._channel, self._keys, step)
        deadline = time.monotonic() + self._patience
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return _result(self._channel.join(call), step)
            except LoginRefused as error:
                raise translated(error, self._channel.where) from error
            except ConnectionLost as error:
                if time.monotonic() + pause > deadline or self._closing.wait(pause):
                    raise self._given_up(error) from error
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            except ResponseError as error:
                if not no_function(error):
                    raise translated(error, self._channel.where) from error
                library.load(self._channel)

    def _given_up(self, error: Exception) -> Exception:
        reason = translated(error, self._channel.where)
        return StoreUnreachable(f"a step got no reply for {self._patience:g} s and may have happened: {reason}")


def _result(reply: list[bytes | int], step: Step) -> Committed | Fenced | Conflict:
    word, *rest = reply
    if word == b"OK":
        return Committed(version=int(rest[0]), at=position(text(rest[1])))
    if word == b"FENCED":
        return Fenced(token=text(rest[0]))
    if word == b"CONFLICT":
        conflict = Conflict(
            version=int(rest[0]),
            log_cursor=position(text(rest[1])),
            mail_cursor=position(text(rest[2])),
            step_id=text(rest[3]),
            at=position(text(rest[4])),
        )
        if conflict.step_id == step.step_id:
            return Committed(version=conflict.version, at=conflict.at)
        return conflict
    raise StoreBroken(f"a step of {step.shard} was refused and nothing was written: {text(rest[0])}")
