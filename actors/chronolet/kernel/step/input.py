"""One message for a shard, on its way to the decision.

Input: nothing. Output: `Input`. Next: `routing` and the effects, which create it; `ledger`, which decides it.
"""

from __future__ import annotations

import zlib
from typing import Literal, NamedTuple

from chronolet.kernel.decider import Due, EffectFailed
from chronolet_schemas.envelope import Message, Position


class Input(NamedTuple):
    """One message for a shard.

    `at` is the message's position in the log, its id in the mailbox, or START if it exists only in memory.
    `undecodable` is the error if the message cannot be decoded or routed; such a message is quarantined, not decided.
    """

    source: Literal["log", "mailbox", "signal", "due"]
    at: Position
    keys: tuple[str, ...]
    message: Message | None
    cause: str
    type: str
    entity: str = ""
    data: bytes = b""
    undecodable: str = ""
    time: int = 0
    """When the log entry was written, in milliseconds; 0 if the message is not from the log."""
    entries: int = 1
    """Number of the log entries that were combined into the message; `at` is the last of them."""

    def identity(self) -> str:
        """Return a key that is the same on each delivery of the message: its place in log or mailbox, or its
        content.
        """
        if self.source in ("log", "mailbox"):
            return f"{self.source}:{self.at}"
        about = ""
        if isinstance(self.message, EffectFailed):
            about = f"{self.message.subject}:{self.message.intent}"
        elif isinstance(self.message, Due):
            about = str(self.message.at)
        elif self.source == "signal":
            # Include the content: the success of another signal of the same type must not reset this one's attempt
            # count.
            about = f"{zlib.crc32(repr(self.message).encode()):08x}"
        return f"{self.source}:{self.type}:{self.keys[0]}:{about}"
