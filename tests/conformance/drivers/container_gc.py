"""Runs the cases of container_gc.json against the collector's scan, plan and decider.

The runtime returns what the case prescribes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from chronolet.adapters.fakes.runtime import FakeRuntime
from chronolet.container_gc import policy, signals, wanted
from chronolet.container_gc.decider import DECIDER
from chronolet.container_gc.effects import Collecting
from chronolet.container_gc.inventory import Inventory
from chronolet.container_gc.planning import plan
from chronolet.container_gc.planning.verdicts import Pods
from chronolet.container_gc.state import State
from chronolet.ports.pods.pod_logs import LogFolder, LogLink, NoPodLogs
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal
from chronolet_schemas import container_gc, kube_events
from chronolet_schemas.envelope import Event
from chronolet_schemas.pleg import SANDBOX
from tests.conformance.drivers.context import Context
from tests.conformance.outcome import Case, as_sets, differences

_FIRST = 1_700_000_000_000
_LATER = 100_000
"""The current time of cases that name none, in seconds after `_FIRST`."""


class _Node(FakeRuntime, NoPodLogs):
    """A runtime and log folders with the content of a case."""

    def __init__(
        self, listed: Sequence[ContainerState] = (), folders: Sequence[str] = (), links: Sequence[LogLink] = ()
    ) -> None:
        super().__init__()
        self._listed = {one.id: one for one in listed}
        self._folders = folders
        self._links = links
        self._fails: Mapping[str, Sequence[str]] = {}
        self.stopped: list[str] = []

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        for stage in ("containers", "sandboxes"):
            self._may("lists", stage)
        return [one for one in self._listed.values() if labels.items() <= one.labels.items()]

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        del timeout_seconds
        self._may("stop_fails_ids", container_id_or_name)
        return self._listed.get(container_id_or_name)

    def kill(self, container_id: str, signal: str = "KILL") -> None:
        del signal
        self.stopped.append(container_id)

    def wait(self, container_id: str, timeout_seconds: float) -> bool:
        del timeout_seconds
        return container_id in self.stopped

    def remove_dead(self, container_id: str) -> None:
        self._may("remove_fails_ids", container_id)
        del self._listed[container_id]

    def fails(self, given: Case) -> None:
        """Make the calls listed in the case fail. A stop that fails does so in its first step, the inspection of the
        container.
        """
        self._fails = {key: given.get(key, ()) for key in ("stop_fails_ids", "remove_fails_ids", "lists")}

    def _may(self, key: str, what: str) -> None:
        if what in self._fails.get(key, ()):
            raise Refusal("failed", f"{what}: as the case says")

    @property
    def remaining(self) -> set[str]:
        """The ids of the containers that have not been removed."""
        return set(self._listed)

    def folders(self) -> Sequence[LogFolder]:
        return [LogFolder(name=one) for one in self._folders]

    def links(self) -> Sequence[LogLink]:
        return self._links


def _scan(node: _Node, rules: container_gc.Policy | None = None) -> signals.Looked:
    return Inventory(node, node, "node", rules or container_gc.Policy()).scan()


def _policy(given: Case) -> container_gc.Policy:
    return container_gc.Policy(
        min_age_milliseconds=given["min_age_seconds"] * 1000,
        max_per_container=given["max_per_pod_container"],
        max_containers=given["max_containers"],
    )


_STATES = {"ready": "running", "not_ready": "exited"}


def _state(one: Case, *, container: str, sandbox_id: str = "") -> ContainerState:
    uid = one.get("pod_uid", "")
    owner = labels.Owner(pod=f"default/{uid}", uid=uid or "u", container=container, attempt=one.get("attempt", 0))
    state: Any = one["state"]
    return ContainerState(
        id=one["id"],
        name=one["id"],
        labels=labels.written("node", owner) if one.get("kubelet_labels", True) else {},
        state=_STATES.get(state, state),
        created_at=_FIRST + one.get("created_at_seconds", 0) * 1000,
        sandbox_id=sandbox_id,
        detailed=False,
    )


def _pods(given: Case) -> Pods:
    states = given["pods"]
    return Pods(
        known=[uid for uid, state in states.items() if state != "deleted"],
        terminated=[uid for uid, state in states.items() if state == "terminated"],
        sources_ready=given.get("all_sources_ready", True),
        evict_terminated=given["evict_terminated_pods"],
    )


def _evict_containers(case: Case) -> Iterable[str]:
    given = case["given"]
    node = _Node([_state(one, container=one["container_name"]) for one in given["containers"]])
    scan = _scan(node, _policy(given["policy"]))
    return _evicted(case, node, scan, given["containers"], _FIRST + given["now_seconds"] * 1000)


def _evict_sandboxes(case: Case) -> Iterable[str]:
    given = case["given"]
    sandboxes = [_state(one, container=SANDBOX) for one in given["sandboxes"]]
    containers = [_state(one, container="app", sandbox_id=one["sandbox_id"]) for one in given["containers"]]
    # The containers are not what the case is about, so none of them may be removed.
    unlimited = container_gc.Policy(max_per_container=-1, min_age_milliseconds=_LATER * 10_000)
    node = _Node([*sandboxes, *containers])
    return _evicted(case, node, _scan(node, unlimited), given["sandboxes"], _FIRST + _LATER * 1000)


def _evicted(case: Case, node: _Node, scan: signals.Looked, there: Sequence[Case], now: int) -> Iterable[str]:
    """Carry out the decider's run with the product's worker, on a runtime that fails as the case prescribes; return the
    differences from what the case expects.
    """
    pods = _pods(case["given"])
    judged = plan.victims(plan.judged(scan, pods, scan.policy, now))
    begun = _run(_state_with(pods), scan, now)
    victims = begun.victims if begun else ()
    assert victims == judged, "gc plan names other victims"
    node.fails(case["given"])
    removed = _carried_out(node, begun, now)
    found = {
        "removed_ids": sorted(removed),
        "remaining_ids": sorted(one["id"] for one in there if one["id"] in node.remaining),
        "stopped_before_removal_ids": sorted(node.stopped),
    }
    return differences(as_sets(case["expect"], *found), found)


def _state_with(pods: Pods) -> State:
    state = DECIDER.initial
    known: Any = pods.known
    finished: Any = pods.terminated
    events: list[Event] = [container_gc.PodNoted(pod=f"default/{uid}", uid=uid) for uid in known]
    events += [container_gc.PodFinished(pod=f"default/{uid}", uid=uid) for uid in finished]
    events += [container_gc.SourcesReady()] if pods.sources_ready else []
    # Finished pods are collected only when the disk is full.
    events += [container_gc.RunRequested(trigger="disk")] if pods.evict_terminated else []
    return _folded(state, events)


def _folded(state: State, events: Iterable[Event]) -> State:
    for event in events:
        state = DECIDER.evolve(state, event) or DECIDER.initial
    return state


def _run(state: State, scan: signals.Looked, now: int) -> container_gc.RunStarted | None:
    intent = next((one.intent for one in DECIDER.outstanding(state) if isinstance(one, wanted.Look)), "")
    events = DECIDER.decide(state, replace(scan, intent=intent), now)
    return next((one for one in events if isinstance(one, container_gc.RunStarted)), None)


def _carried_out(node: _Node, begun: container_gc.RunStarted | None, now: int) -> list[str]:
    """Return the ids that the decider records as removed."""
    if begun is None:
        return []
    worker = Collecting(Inventory(node, node, "node", container_gc.Policy()), period_seconds=60)
    decided = _until_finished(worker, _folded(DECIDER.initial, [begun]), (), now)
    return [one.id for one in decided if isinstance(one, container_gc.Removed)]


def _removal(state: State) -> wanted.Remove | None:
    return next((one for one in DECIDER.outstanding(state) if isinstance(one, wanted.Remove)), None)


def _log_directories(case: Case) -> Iterable[str]:
    given = case["given"]
    pods = Pods(known=given["existing_pod_uids"], sources_ready=given["all_sources_ready"])
    return differences(
        as_sets(case["expect"], "removed_directories"),
        {"removed_directories": _gone(_scan(_Node(folders=given["directories"])), pods)},
    )


def _links(case: Case) -> Iterable[str]:
    links = case["given"]["links"]
    listed = [_state({"id": f"k-{one['link']}", "state": one["container_status"]}, container="app") for one in links]
    found = [
        LogLink(name=one["link"], container_id=f"k-{one['link']}", target_exists=one["target_exists"]) for one in links
    ]
    scan = _scan(_Node(listed, links=found))
    gone = _gone(scan, Pods(known={"u"}))
    return differences(as_sets(case["expect"], "removed_links"), {"removed_links": gone})


def _gone(scan: signals.Looked, pods: Pods) -> list[str]:
    """Return the log folders and links to remove; the decider must choose the same ones."""
    now = _FIRST + _LATER * 1000
    stages = plan.judged(scan, pods, scan.policy, now)
    begun = _run(_state_with(pods), scan, now)
    assert (begun.victims if begun else ()) == plan.victims(stages)
    return sorted(one.id for one in plan.victims(stages) if one.what in ("log_folder", "log_link"))


def _stages(case: Case) -> Iterable[str]:
    """Scan a node with a dead object for each stage, and carry out the run that follows.

    A stage counts as run if its error is reported, or if its object was removed or is counted among the kept ones.
    """
    failing = case["given"]["failing_stages"]
    listed = [
        _state({"id": "k1", "state": "exited", "pod_uid": "gone"}, container="app", sandbox_id="s1"),
        _state({"id": "s1", "state": "exited", "pod_uid": "gone"}, container=SANDBOX),
    ]
    node = _Node(listed, folders=["default_web_gone"])
    worker = Collecting(Inventory(node, node, "node", container_gc.Policy()), period_seconds=60)
    scan = _scanned(worker)
    node.fails({"lists": failing})
    errors = _scanned(worker).errors
    node.fails({})
    assert errors.keys() >= set(failing), "a listing that fails is not reported"
    # Here one call lists both containers and sandboxes; in a case, only one of these listings may fail.
    scan = replace(scan, errors={stage: f"{stage}: {errors[stage]}" for stage in failing})
    state = _state_with(Pods(known=()))
    now = _FIRST + _LATER * 1000
    events = DECIDER.decide(state, scan, now)
    ended = _until_finished(worker, _folded(state, events), events, now)
    (finished,) = (one for one in ended if isinstance(one, container_gc.RunFinished))
    reported = [stage for stage in _OBJECTS if f"{stage}: " in finished.error]
    assert [one.message for one in ended if isinstance(one, kube_events.Recorded)] == [finished.error]
    dealt = {one.what for one in ended if isinstance(one, container_gc.Removed)}
    found = {
        "stages_run": [
            stage
            for stage, (what, rules) in _OBJECTS.items()
            if stage in reported or what in dealt or rules & finished.kept.keys()
        ],
        "returns_error": bool(finished.error),
        "error_count": len(reported),
    }
    return differences(case["expect"], found)


def _scanned(worker: Collecting) -> signals.Looked:
    answer = worker.scan(wanted.Look(subject="", intent=""), Context())
    assert isinstance(answer, signals.Looked)
    return answer


_OBJECTS: Mapping[str, tuple[str, set[str]]] = {
    "containers": ("container", set()),
    "sandboxes": ("sandbox", {"has_containers"}),
    "pod_log_directories": ("log_folder", set()),
}
"""Maps each stage to the type of object that it removes, and the rules by which its objects are kept in `_stages`."""


def _until_finished(worker: Collecting, state: State, events: Sequence[Event], now: int) -> list[Event]:
    """Carry out removals until none is outstanding, and return all events."""
    decided = list(events)
    while effect := _removal(state):
        events = DECIDER.decide(state, worker.remove(effect, Context()), now)
        decided += events
        state = _folded(state, events)
    return decided


def _policy_validation(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"valid": not policy.problem(_policy(case["given"]))})


def _periodic_loop(case: Case) -> Iterable[str]:
    state, reasons, kinds = DECIDER.initial, [], set()
    for number, result in enumerate(case["given"]["results"]):
        errors: dict[signals.Stage, str] = {"containers": "no listing"} if result == "error" else {}
        scan = signals.Looked(node="node", policy=container_gc.Policy(), errors=errors)
        now = _FIRST + number * case["given"]["period_seconds"] * 1000
        events = DECIDER.decide(state, scan, now)
        state = _folded(state, events)
        recorded = [one for one in events if isinstance(one, kube_events.Recorded)]
        reasons.append([one.reason for one in recorded])
        kinds |= {one.severity for one in recorded}
    return differences(case["expect"], {"events_after_each": reasons, "event_type": "".join(kinds)})


KINDS = {
    "evict_containers": _evict_containers,
    "evict_sandboxes": _evict_sandboxes,
    "evict_pod_log_directories": _log_directories,
    "dangling_container_log_links": _links,
    "garbage_collect_stages": _stages,
    "policy_validation": _policy_validation,
    "periodic_loop": _periodic_loop,
}
