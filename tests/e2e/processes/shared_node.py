"""A node whose shards several named processes share. Its pods record each of their probes themselves.

Input: a node, a client of its Redis. Output: processes, who owns which shard, and checks that no probe was missed or
doubled and nothing was done by two owners. Next: the tests of this folder.
"""

from __future__ import annotations

import itertools
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import redis

from chronolet.kernel.storage.redis.replies import text
from chronolet.node.composition.kinds import SHARDS
from chronolet_schemas import kernel, pod, prober
from chronolet_schemas.keys import Keys, shards_of
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes.probed_pods import NEVER, with_period
from tests.support.scratch import PATIENCE, wait_until

STAYS = "trap 'exit 0' TERM; while :; do sleep 1; done"
PERIOD = 1000
PODS = ("a", "b", "c")
LEASE_MS = 3000
LONGEST_TAKEOVER_MS = round(LEASE_MS * PATIENCE)
"""The length of a lease, multiplied by `PATIENCE` as all time limits of the tests are on a busy machine."""
ALL = [shard for kind, count in SHARDS.items() for shard in shards_of(kind, count)]


class SharedNode:
    """A node with named processes.

    `client`: returns a client of the node's server. `failing`: the liveness probes always fail, so that the log records
    each one; otherwise they succeed, and nothing of them is in the log. `url`: returns the server's address for the
    process of this name.
    """

    def __init__(
        self,
        node: Node,
        client: Callable[[], redis.Redis],
        *,
        failing: bool = True,
        url: Callable[[str], str] = lambda _name: "",
    ) -> None:
        self.node = node
        self.keys = Keys(node.name)
        self.client = client
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._failing = failing
        self._url = url
        self._trace = node.root / "trace"
        self._trace.mkdir()
        ready = {"exec": {"command": ["cat", "/etc/passwd"]}, "timeoutSeconds": 60}
        mount = [{"name": "trace", "mountPath": "/trace"}]
        volumes = [{"name": "trace", "hostPath": {"path": str(self._trace)}}]
        for name in PODS:
            script = f"cut -d ' ' -f 1 /proc/uptime >> /trace/{name}; exit {int(failing)}"
            probe = {"exec": {"command": ["/bin/sh", "-c", script]}, "failureThreshold": NEVER, "timeoutSeconds": 60}
            app = shell("app", STAYS, livenessProbe=probe, readinessProbe=ready, volumeMounts=mount)
            node.write(f"{name}.yaml", with_period(PERIOD, a_pod(name, app, volumes=volumes)))

    # -- processes -------------------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        self.processes[name] = self.node.start_named(name, url=self._url(name))

    def owners(self) -> Counter[str]:
        """Return how many shards each process owns; shards without an owner are counted under the empty name."""
        client = self.client()
        tokens = [client.hget(self.keys.shard(shard), "token") for shard in ALL]
        return Counter(text(token or b"").partition(":")[2] for token in tokens)

    def wait_until_even(self, *names: str) -> None:
        """Wait until these processes own all shards, and the numbers that they own differ by at most one."""

        def is_even() -> bool:
            found = self.owners()
            return found.keys() == set(names) and max(found.values()) - min(found.values()) <= 1

        try:
            wait_until(is_even, f"an even share of {names}")
        except TimeoutError as error:
            logs = [self.node.log_of_other(one)[-1_500:] for one in names]
            raise TimeoutError(f"{error}; the owners are {self.owners()}; logs: {logs}") from error

    def moves(self) -> int:
        client = self.client()
        return sum(int(client.hget(self.keys.shard(shard), "moves") or 0) for shard in ALL)

    def wait_for_renewals(self, count: int) -> None:
        """Wait until each process has renewed its lease `count` more times."""

        def renewals() -> list[int]:
            return [int(self.client().hget(self.keys.meta, f"process:{name}") or 0) for name in self.processes]

        before = renewals()
        wait_until(lambda: all(now >= was + count for now, was in zip(renewals(), before, strict=True)), "renewals")

    # -- probes ----------------------------------------------------------------------------------------------------

    def probed_at(self, name: str) -> list[float]:
        """Return when the pod was probed, in seconds since the boot, as its container has written it down."""
        path = self._trace / name
        return [float(line) for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for_probes(self, more: int = 2) -> None:
        """Wait for `more` further probes of each pod. Each failure is recorded once, in order, whichever process
        probes.
        """
        before = {name: len(self.probed_at(name)) for name in PODS}
        what = f"{more} more probes of each pod"
        self.node.journal.wait_for(what, lambda: all(len(self.probed_at(n)) >= before[n] + more for n in PODS))
        for name in PODS:
            counts = [one.consecutive for one in self.node.journal.events(prober.ProbeFailed, pod=f"default/{name}")]
            assert self._failing or not counts
            first = counts[0] if counts else 0
            assert counts == list(range(first, first + len(counts))), f"{name}: a failure was lost or doubled"

    def longest_pause(self, since: float) -> float:
        """Return the longest time without a probe of a pod since this moment (seconds since the boot), in seconds
        beyond the period.
        """
        pauses = [
            after - one for name in PODS for one, after in itertools.pairwise(self.probed_at(name)) if after >= since
        ]
        return max(pauses, default=0.0) - PERIOD / 1000

    def results(self) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return the raw results so far of each probe, oldest first."""
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        entries: Any = self.client().xrange(self.keys.probe_results)
        for _, fields in entries:
            one = {text(name): text(value) for name, value in fields.items()}
            found.setdefault((one["pod"], one["probe"]), []).append(one)
        return found

    def check_times(self, *, lost_ms: int = 0) -> int:
        """Check that no scheduled probe was made twice, and that none was skipped except after a late or slow one.
        `lost_ms`: how many more milliseconds without probes a kill may cause. Returns the number of probe results.
        """
        total = 0
        for who, found in self.results().items():
            results = sorted(found, key=_due)
            total += len(results)
            for one, after in itertools.pairwise(results):
                periods = (_due(after) - _due(one)) / PERIOD
                # Even without moves, a probe that is late or slow by some periods skips that many scheduled times.
                most = 1 + (float(one["late_milliseconds"]) + int(one["milliseconds"]) + lost_ms + 200) // PERIOD
                assert 0.5 < periods < most + 0.5, f"{who}: {periods} periods between {one} and {after}"
        return total

    # -- the log -----------------------------------------------------------------------------------------------------

    def check_pods(self, others: Sequence[str] = ()) -> None:
        """Check that no container of `PODS` and `others` was restarted, that no socket was in use when its next owner
        opened it, and that the log has no gap.
        """
        journal = self.node.journal
        journal.read()
        names = (*PODS, *others)
        assert [self.node.restarts(name) for name in names] == [[0]] * len(names)
        started = Counter(one.pod for one in journal.events(pod.ContainerStarted))
        assert all(started[f"default/{name}"] == 1 for name in names), started
        assert not journal.events(kernel.MessageDeadLettered)
        failing = [one for one in journal.events(kernel.EffectsFailing) if "in use" in one.error]
        assert not failing, "a socket was held by two owners"
        numbers = [line.entry.position.n for line in journal.lines]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "the log has a gap"


def _due(result: dict[str, Any]) -> float:
    return int(result["at"]) - float(result["late_milliseconds"])
