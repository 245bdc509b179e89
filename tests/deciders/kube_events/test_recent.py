"""Which entries a cache of recent events evicts."""

import pytest

from chronolet.kube_events.recent import remembered
from chronolet.kube_events.state import Cache


@pytest.mark.parametrize(
    ("put", "left"),
    [("abc", "bc"), ("abac", "ac"), ("abbc", "bc"), ("abcba", "ba"), ("abcbad", "ad"), ("abbcd", "cd")],
    ids=["the oldest", "seen again first", "seen again last", "put in again", "after both", "after a gap"],
)
def test_the_least_recently_used_entry_is_evicted(put: str, left: str) -> None:
    cache: Cache[int] = Cache(size=2)
    for key in put:
        cache = remembered(cache, {key: 1})
    assert set(cache.entries) == set(left)
