"""The kinds and shard counts with which a new log begins, whether or not this release hosts them."""

from chronolet.node.composition.collectors import uncollected
from chronolet.node.composition.kinds import SHARDS
from chronolet.node.settings.shard_counts import DIVISIBLE
from chronolet.node.settings.table import ALL_ACTORS


def test_a_new_log_knows_all_ten_kinds() -> None:
    later = {"prober", "container_gc", "image_gc", "devices", "qos", "kube_events"}
    assert SHARDS.keys() == {"manifests", "pod", "pleg", "keeper"} | later
    assert SHARDS.keys() >= set(ALL_ACTORS)
    several = {kind: count for kind, count in SHARDS.items() if count > 1}
    assert several == {"pod": 4, "prober": 4}
    assert several.keys() == set(DIVISIBLE)


def test_a_process_that_runs_pods_warns_of_missing_collectors() -> None:
    assert uncollected(ALL_ACTORS) == uncollected(("prober", "keeper")) == ""
    assert uncollected(("pod", "container_gc")) == "images are never removed, unless another process hosts image_gc"
    assert uncollected(("pod",)) == (
        "dead containers stay until their pods end, images are never removed, unless another process hosts "
        "container_gc and image_gc"
    )
