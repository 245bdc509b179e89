"""All outcomes of a container whose probes never change anything are shown later: after they left Redis, and after the
agent was killed.
"""

from __future__ import annotations

import json
from typing import Any

import redis

from chronolet.adapters.probes.results.reader import kept_results
from chronolet_schemas import keeper, pod, prober
from chronolet_schemas.keys import Keys
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes import quick_archiving
from tests.e2e.probes.probed_pods import ENOUGH_SECONDS, NEVER, with_period
from tests.support.scratch import wait_until

PERIOD = 200


def start(node: Node) -> None:
    node.start(wrapper=quick_archiving.WRAPPER)


def steady(name: str) -> dict[str, Any]:
    """Return a pod whose probes always succeed, with an output."""
    probe = {"exec": {"command": ["echo", "fine"]}, "timeoutSeconds": ENOUGH_SECONDS, "failureThreshold": NEVER}
    return with_period(PERIOD, a_pod(name, shell("app", livenessProbe=probe, readinessProbe=probe)))


def history(node: Node, *words: str) -> dict[str, Any]:
    result = node.chronolet("history", "probes", "-o", "json", *words)
    assert result.status == 0, result
    found: dict[str, Any] = json.loads(result.out)
    return found


def times(found: dict[str, Any], probe: str) -> list[int]:
    """Return when each recorded probe of this name began; all must be successes, except those in progress when an
    agent ended.
    """
    every = [run for one in found["probes"] if one["probe"] == probe for run in one["runs"]]
    runs = [run for run in every if not run["output"].startswith("probe cancelled")]
    assert {(run["outcome"], run["output"], run["otherOutputs"]) for run in runs} <= {("success", "fine\n", 0)}
    return [at for run in runs for at in run["at"]]


def files(node: Node) -> int:
    """Return the number of archive files of outcomes, by the log."""
    node.journal.read()
    return len(node.journal.events(keeper.ProbesArchived))


def wait_for_files(node: Node, more: int) -> None:
    goal = files(node) + more
    node.journal.wait_for("archive files of probe outcomes", lambda: files(node) >= goal, 60)


def gaps(found: dict[str, Any]) -> list[str]:
    return [one["why"] for one in found["notRecorded"]]


def test_outcomes_are_shown_after_they_left_redis_and_after_a_kill(own_node: Node) -> None:
    node, keys = own_node, Keys(own_node.name)
    client = redis.Redis.from_url(node.url)
    node.journal.keeping = quick_archiving.QUICK.policy
    start(node)
    node.write("steady.yaml", steady("steady"))
    node.journal.wait_for_event(pod.ContainerStarted, pod="default/steady")
    wait_for_files(node, 3)
    node.journal.read()
    assert not node.journal.events(prober.ProbeFailed, pod="default/steady")
    client.delete(keys.probe_results)

    first = history(node, "pod/steady", "-c", "app")
    before = {name: times(first, name) for name in ("Liveness", "Readiness")}
    assert all(len(each) > 3 and each == sorted(set(each)) for each in before.values()), before
    assert gaps(first) == []
    (probe, *_) = first["probes"]
    assert (probe["namespace"], probe["pod"], probe["container"], probe["attempt"]) == ("default", "steady", "app", 0)

    # The last of these files has what was in memory above. What the stream of single outcomes has is not lost either.
    wait_for_files(node, 3)
    wait_until(lambda: client.xlen(keys.probe_results) > 3, "outcomes")
    node.kill9()
    single = {name: list[int]() for name in before}
    for one in kept_results(node.url, node.name):
        single[one.probe].append(int(one.at))
    wait_until(lambda: gaps(history(node, "steady")) == ["unwritten"], "the end of the killed agent's lease")
    killed = history(node, "steady")
    for name, known in before.items():
        assert set(known) | set(single[name]) <= set(times(killed, name))
    client.delete(keys.probe_results)
    archived = {name: times(history(node, "steady"), name) for name in before}
    assert all(set(known) <= set(archived[name]) for name, known in before.items())

    start(node)
    wait_for_files(node, 2)
    later = history(node, "steady")
    for name, known in archived.items():
        assert set(known) < set(times(later, name)), "no outcome is lost, and there are new ones"
    assert "unwritten" in gaps(later)
    node.stop()
    client.delete(keys.probe_results)
    ended = history(node, "steady")
    for name in before:
        assert set(times(later, name)) <= set(times(ended, name)), "without an agent"
    assert gaps(ended).count("unwritten") == 1, "the second agent has ended in order"
    assert "steady" in node.chronolet("history", "probes", "steady").out
    client.close()
