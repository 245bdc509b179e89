"""Records the log of a real agent with a few pods that start, crash, fail probes, are changed and end.

    python -m tests.bench.history.recording

replaces the recording next to this file. Input: a Docker Engine. Output: the log's entries, in order, in an archive
file. Next: `recorded_entries`, which reads it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from chronolet.adapters.archive.folder import FolderStorage
from chronolet.kernel.log.archive import Archive
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, kernel
from chronolet_schemas.envelope import START, Entry
from tests.bench.history.recorded_entries import FOLDER
from tests.bench.pods.agent import NODE, Agent, running
from tests.support import scratch
from tests.support.docker.images import BUSYBOX

PODS = 10
ENTRIES = 4_000
"""The least number of entries that is recorded."""
_ROUND_SECONDS = 900
_SLEEPS = "trap 'exit 0' TERM; touch /tmp/ok; sleep 1000000 & wait"
_SHORT = "touch /tmp/ok; sleep 3; rm /tmp/ok; trap 'exit 0' TERM; sleep 1000000 & wait"
_PROBE = {"exec": {"command": ["test", "-f", "/tmp/ok"]}, "periodSeconds": 1, "failureThreshold": 2}


def main() -> None:
    """Record a log, and replace the recording."""
    found = recorded(ENTRIES)
    run = codec.decode(found[0].type, found[0].data, kernel.LogStarted).run
    shutil.rmtree(FOLDER)
    Archive(FolderStorage(FOLDER, run), NODE, run).write(found, START)


def recorded(entries: int) -> Sequence[Entry]:
    """Run pods, round after round, until the log has this many entries and all pods have ended; return all entries."""
    with running() as agent:
        store = RedisStore(agent.url, NODE)
        for number in range(10_000):
            _round(agent, store, number)
            if store.last().n >= entries:
                break
        found = list(store.scan(START))
        store.close()
    return found


def _round(agent: Agent, store: RedisStore, number: int) -> None:
    """Start the pods, wait until each has started or crashed a few times, then remove all."""
    begun = store.last()
    for pod in range(PODS):
        path = agent.folder / f"web-{pod}.json"
        path.write_text(json.dumps(_manifest(pod)))
        path.rename(agent.manifests / path.name)
    wanted = {f"default/web-{pod}": 3 if pod % 5 in (1, 2) else 1 for pod in range(PODS)}
    scratch.wait_until(
        lambda: all(_starts(store, begun, pod) >= count for pod, count in wanted.items()),
        f"the starts of round {number}",
        _ROUND_SECONDS,
    )
    for pod in range(PODS):
        (agent.manifests / f"web-{pod}.json").unlink()
    scratch.wait_until(
        lambda: len({one.entity for one in _since(store, begun) if one.type.startswith("pod.PodEnded")}) == PODS,
        f"the end of round {number}",
        _ROUND_SECONDS,
    )


def _starts(store: RedisStore, begun: Any, pod: str) -> int:
    return sum(1 for one in _since(store, begun) if one.entity == f"pod/{pod}" and "pod.ContainerStarted" in one.type)


def _since(store: RedisStore, begun: Any) -> Iterator[Entry]:
    return store.scan(begun)


def _manifest(pod: int) -> dict[str, Any]:
    """Return one of five sorts of pods: steady with probes, crashing, failing its liveness probe, two containers, one
    that ends by itself.
    """
    container: dict[str, Any] = {
        "name": "app",
        "image": BUSYBOX.reference,
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", _SLEEPS],
        "env": [{"name": "POD", "value": f"web-{pod}"}, {"name": "MODE", "value": "production"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    containers = [container]
    match pod % 5:
        case 0:
            container |= {"readinessProbe": _PROBE, "livenessProbe": _PROBE}
        case 1:
            container |= {"command": ["/bin/sh", "-c", "exit 3"]}
        case 2:
            container |= {"command": ["/bin/sh", "-c", _SHORT], "livenessProbe": _PROBE, "readinessProbe": _PROBE}
        case 3:
            containers.append({**container, "name": "second"})
        case _:
            container |= {"command": ["/bin/sh", "-c", "sleep 1"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"web-{pod}", "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "restartPolicy": "Never" if pod % 5 == 4 else "Always",
            "terminationGracePeriodSeconds": 2,
            "containers": containers,
        },
    }


if __name__ == "__main__":
    main()
