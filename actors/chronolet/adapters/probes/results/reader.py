"""Read the raw outcomes that are still in the stream `probe_results`.

Input: a server's URL, a node. Output: `RawResult`s, newest first. Next: `describe`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet_schemas.keys import Keys
from chronolet_schemas.prober import RawResult

_PAGE_SIZE = 1000
_TIMEOUT_SECONDS = 5.0


def kept_results(url: str, node: str) -> Iterator[RawResult]:
    """Yield the results, read lazily page by page. Raises StoreUnreachable if the server does not respond. Malformed
    entries, written by other programs, are skipped.
    """
    channel = Channel(Address(url), _TIMEOUT_SECONDS)
    key, end = Keys(node).probe_results, "+"
    try:
        while entries := channel.call("XREVRANGE", key, end, "-", "COUNT", _PAGE_SIZE):
            for _, fields in entries:
                yield from _read(fields)
            end = f"({entries[-1][0].decode()}"
    finally:
        channel.disconnect()


def _read(fields: list[bytes]) -> Iterator[RawResult]:
    texts = [one.decode(errors="replace") for one in fields]
    named = dict(zip(texts[::2], texts[1::2], strict=True))
    try:
        yield msgspec.convert(named, RawResult)
    except msgspec.ValidationError:
        return
