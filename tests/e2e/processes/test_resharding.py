"""Shard counts of a node change while its pods run: nothing restarts, and states at earlier positions stay readable."""

from __future__ import annotations

from contextlib import closing

from chronolet.history.entries import NoArchive
from chronolet.history.state import state_at
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.pod import actor as pod_actor
from chronolet_schemas import kernel, pod, prober
from chronolet_schemas.envelope import Position
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes.probed_pods import NEVER, with_period

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
PROBED = "default/probed"


def _change(node: Node, *wanted: str) -> None:
    result = node.chronolet("shards", *wanted)
    assert result.status == 0, result.err


def _counts(node: Node) -> list[int]:
    return [one.consecutive for one in node.journal.events(prober.ProbeFailed, pod=PROBED)]


def _wait_for_probes(node: Node, more: int) -> None:
    """Wait for `more` further failures; each is counted once, in order, whichever shard has counted it."""
    node.journal.read()
    before = len(_counts(node))
    node.journal.wait_for(f"{more} more failures", lambda: len(_counts(node)) >= before + more)
    assert _counts(node) == list(range(1, len(_counts(node)) + 1))


def _pods_at(node: Node, at: Position | None = None) -> set[str]:
    with closing(RedisStore(node.url, node.name)) as store:
        return set(state_at(store, NoArchive(), [pod_actor.kind()], at).states["pod"])


def _last(node: Node) -> Position:
    with closing(RedisStore(node.url, node.name)) as store:
        return store.last()


def _actors(node: Node, kind: str) -> list[str]:
    return node.chronolet("get", "actors", kind, "-o", "name").out.split()


def test_shards_change_while_pods_run_and_nothing_restarts(own_node: Node) -> None:
    node = own_node
    node.start()
    probe = {"exec": {"command": ["cat", "/none"]}, "failureThreshold": NEVER, "timeoutSeconds": 60}
    script = "trap 'exit 0' TERM; while :; do sleep 1; done"
    node.write("probed.yaml", with_period(200, a_pod("probed", shell("app", script, livenessProbe=probe))))
    for name in NAMES:
        node.write(f"{name}.yaml", a_pod(name))
    node.wait_until_running("probed", *NAMES)
    everything = {"default/probed", *(f"default/{name}" for name in NAMES)}
    started = node.started_at("probed", *NAMES)
    _wait_for_probes(node, 2)
    before = _last(node)

    _change(node, "pod=8", "prober=2")
    assert len(_actors(node, "pod")) == 8
    _wait_for_probes(node, 5)
    node.write("late.yaml", a_pod("late"))
    node.wait_until_running("late")
    middle = _last(node)

    node.kill9()
    node.start()
    _wait_for_probes(node, 2)
    _change(node, "pod=2", "prober=8")
    assert _actors(node, "pod") == ["actor/pod/0", "actor/pod/1"]
    _wait_for_probes(node, 5)

    assert node.started_at("probed", *NAMES) == started, "no container was started again"
    assert len(node.journal.events(pod.ContainerStarted)) == len(everything) + 1
    changes = [(one.kind, one.before, one.after) for one in node.journal.events(kernel.KindResharded)]
    assert changes == [("pod", 4, 8), ("prober", 4, 2), ("pod", 8, 2), ("prober", 2, 8)]

    (node.folder / "alpha.yaml").unlink()
    node.wait_until_gone("alpha")
    node.kill_process("beta", "app")
    node.journal.wait_for("the restart of a killed container", lambda: node.restarts("beta") == [1])
    node.wait_until_running("beta")

    assert _pods_at(node, before) == everything
    assert _pods_at(node, middle) == everything | {"default/late"}
    assert _pods_at(node) == (everything | {"default/late"}) - {"default/alpha"}
    listed = node.chronolet("get", "pods", "-o", "name").out.split()
    assert set(listed) == {f"pod/{name.partition('/')[2]}" for name in _pods_at(node)}
    for dead in (kernel.MessageDeadLettered, kernel.EntryQuarantined, kernel.HostRestarted):
        assert not node.journal.events(dead)


def test_a_new_log_begins_with_the_chosen_shards_and_an_old_one_keeps_its_own(own_node: Node) -> None:
    node = own_node
    node.start(0, "--shards", "pod=3")
    node.write("alpha.yaml", a_pod("alpha"))
    node.wait_until_running("alpha")
    assert len(_actors(node, "pod")) == 3
    started = node.started_at("alpha")
    assert node.stop() == 0
    node.start(0, "--shards", "pod=8")
    line = node.wait_for_log("shard count not used")
    assert "chronolet shards pod=8" in line
    _change(node, "pod=8")
    assert len(_actors(node, "pod")) == 8
    assert node.started_at("alpha") == started
