"""The setting `shards`: the shard counts of a new log. Counts that no log may have are refused."""

import pytest

from chronolet.node.settings.resolving import resolve
from chronolet.node.settings.values import SettingsError


@pytest.mark.parametrize(
    ("text", "counts"),
    [("", {}), ("pod=8", {"pod": 8}), ("pod=1, prober=64", {"pod": 1, "prober": 64})],
)
def test_counts_by_kind(text: str, counts: dict[str, int]) -> None:
    assert resolve({"shards": text}, {})[0].shards == counts
    assert resolve({}, {"CHRONOLET_SHARDS": text})[0].shards == counts


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("pod", "--shards: found 'pod', expected pairs such as name=amount"),
        ("pod=0", "--shards: pod: found '0', expected a number of shards from 1 to 64"),
        ("pod=08", "--shards: pod: found '08', expected a number"),
        ("pod=65", "--shards: pod: found '65', expected a number"),
        ("qos=2", "--shards: found qos=2, but qos always has one shard; expected pod or prober"),
        ("pod=8,devices=1", "--shards: found devices=1, but devices always has one shard"),
        ("eviction=2", "--shards: found kind 'eviction', expected pod or prober"),
    ],
)
def test_what_no_log_may_have_is_refused(text: str, error: str) -> None:
    with pytest.raises(SettingsError, match=error.replace("(", "\\(")):
        resolve({"shards": text}, {})
