"""The kinds that a new log fixes for ever: all that a node will ever have, hosted by this release or not."""

from chronolet.node.kinds import SHARDS
from chronolet.node.settings import ALL_ACTORS


def test_a_new_log_knows_all_ten_kinds() -> None:
    later = {"prober", "container_gc", "image_gc", "devices", "qos", "kube_events"}
    assert SHARDS.keys() == {"manifests", "pod", "pleg", "keeper"} | later
    assert SHARDS.keys() >= set(ALL_ACTORS)
    several = {kind: count for kind, count in SHARDS.items() if count > 1}
    assert several == {"pod": 4, "prober": 4}
