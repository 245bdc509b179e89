"""Cases of container_gc.json, by the collector's look, plan and decider, which is answered as the case says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from chronolet.adapters.fake_runtime import FakeRuntime
from chronolet.container_gc import plan, policy, signals, wanted
from chronolet.container_gc.decider import DECIDER
from chronolet.container_gc.inventory import Inventory
from chronolet.container_gc.state import State
from chronolet.container_gc.verdicts import Pods
from chronolet.ports import labels
from chronolet.ports.pod_logs import LogFolder, LogLink, NoPodLogs
from chronolet.ports.runtime import ContainerState
from chronolet_schemas import container_gc, kube_events
from chronolet_schemas.envelope import Event
from chronolet_schemas.pleg import SANDBOX
from tests.conformance.outcome import Case, as_sets, differences

_FIRST = 1_700_000_000_000
_LATER = 100_000
"""When a case takes place that does not say so."""


class _Node(FakeRuntime, NoPodLogs):
    """A runtime, and log folders, that have what a case says."""

    def __init__(
        self, listed: Sequence[ContainerState] = (), folders: Sequence[str] = (), links: Sequence[LogLink] = ()
    ) -> None:
        super().__init__()
        self._listed = listed
        self._folders = folders
        self._links = links

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        return [one for one in self._listed if labels.items() <= one.labels.items()]

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        del timeout_seconds
        return next(one for one in self._listed if one.id == container_id_or_name)

    def folders(self) -> Sequence[LogFolder]:
        return [LogFolder(name=one) for one in self._folders]

    def links(self) -> Sequence[LogLink]:
        return self._links


def _look(node: _Node, rules: container_gc.Policy | None = None) -> signals.Looked:
    return Inventory(node, node, "node", rules or container_gc.Policy()).look()


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
    look = _look(node, _policy(given["policy"]))
    return _evicted(case, look, given["containers"], "container", _FIRST + given["now_seconds"] * 1000)


def _evict_sandboxes(case: Case) -> Iterable[str]:
    given = case["given"]
    sandboxes = [_state(one, container=SANDBOX) for one in given["sandboxes"]]
    containers = [_state(one, container="app", sandbox_id=one["sandbox_id"]) for one in given["containers"]]
    # Whatever becomes of the containers is no part of the case: none of them goes.
    unlimited = container_gc.Policy(max_per_container=-1, min_age_milliseconds=_LATER * 10_000)
    look = _look(_Node([*sandboxes, *containers]), unlimited)
    return _evicted(case, look, given["sandboxes"], "sandbox", _FIRST + _LATER * 1000)


def _evicted(case: Case, look: signals.Looked, there: Sequence[Case], what: str, now: int) -> Iterable[str]:
    """The plan, and what comes of it when the runtime answers as the case says."""
    given, pods = case["given"], _pods(case["given"])
    stages = plan.judged(look, pods, look.policy, now)
    victims = plan.victims(stages)
    decided = _run(_state_with(pods), look, now)
    assert (decided.victims if decided else ()) == victims, "the decider plans otherwise"
    removed, stopped = _carried_out(victims, given, now)
    assert all(one.what == what for one in victims)
    found = {
        "removed_ids": sorted(removed),
        "remaining_ids": sorted(one["id"] for one in there if one["id"] not in removed),
        "stopped_before_removal_ids": sorted(stopped),
    }
    return differences(as_sets(case["expect"], *found), found)


def _state_with(pods: Pods) -> State:
    state = DECIDER.initial
    known: Any = pods.known
    finished: Any = pods.terminated
    events: list[Event] = [container_gc.PodNoted(pod=f"default/{uid}", uid=uid) for uid in known]
    events += [container_gc.PodFinished(pod=f"default/{uid}", uid=uid) for uid in finished]
    events += [container_gc.SourcesReady()] if pods.sources_ready else []
    # What gives up finished pods is a full disk.
    events += [container_gc.RunRequested(trigger="disk")] if pods.evict_terminated else []
    return _folded(state, events)


def _folded(state: State, events: Iterable[Event]) -> State:
    for event in events:
        state = DECIDER.evolve(state, event) or DECIDER.initial
    return state


def _run(state: State, look: signals.Looked, now: int) -> container_gc.RunStarted | None:
    asked = next((one.intent for one in DECIDER.outstanding(state) if isinstance(one, wanted.Look)), "")
    events = DECIDER.decide(state, replace(look, intent=asked), now)
    return next((one for one in events if isinstance(one, container_gc.RunStarted)), None)


def _carried_out(victims: tuple[container_gc.Victim, ...], given: Case, now: int) -> tuple[list[str], list[str]]:
    """The ids that are removed, and those that are stopped before."""
    stop_fails, remove_fails = given.get("stop_fails_ids", ()), given.get("remove_fails_ids", ())
    removed: list[str] = []
    stopped: list[str] = []
    if not victims:
        return removed, stopped
    begun = container_gc.RunStarted(run=1, trigger="period", at=now, victims=victims)
    state = _folded(DECIDER.initial, [begun])
    while effect := _removal(state):
        victim = effect.victim
        if victim.stop:
            stopped.append(victim.id)
        fails = victim.id in remove_fails or (victim.stop and victim.id in stop_fails)
        answer: Any = (
            signals.RemovalRefused(subject=effect.subject, intent=effect.intent, error="refused")
            if fails
            else signals.RemovalDone(subject=effect.subject, intent=effect.intent)
        )
        events = DECIDER.decide(state, answer, now)
        removed += [one.id for one in events if isinstance(one, container_gc.Removed)]
        state = _folded(state, events)
    return removed, stopped


def _removal(state: State) -> wanted.Remove | None:
    return next((one for one in DECIDER.outstanding(state) if isinstance(one, wanted.Remove)), None)


def _log_directories(case: Case) -> Iterable[str]:
    given = case["given"]
    pods = Pods(known=given["existing_pod_uids"], sources_ready=given["all_sources_ready"])
    return differences(
        as_sets(case["expect"], "removed_directories"),
        {"removed_directories": _gone(_look(_Node(folders=given["directories"])), pods)},
    )


def _links(case: Case) -> Iterable[str]:
    links = case["given"]["links"]
    listed = [_state({"id": f"k-{one['link']}", "state": one["container_status"]}, container="app") for one in links]
    found = [
        LogLink(name=one["link"], container_id=f"k-{one['link']}", target_exists=one["target_exists"]) for one in links
    ]
    look = _look(_Node(listed, links=found))
    gone = _gone(look, Pods(known={"u"}))
    return differences(as_sets(case["expect"], "removed_links"), {"removed_links": gone})


def _gone(look: signals.Looked, pods: Pods) -> list[str]:
    """What goes of the log folders; the decider says the same."""
    now = _FIRST + _LATER * 1000
    stages = plan.judged(look, pods, look.policy, now)
    begun = _run(_state_with(pods), look, now)
    assert (begun.victims if begun else ()) == plan.victims(stages)
    return sorted(one.id for one in plan.victims(stages) if one.what in ("log_folder", "log_link"))


def _stages(case: Case) -> Iterable[str]:
    failing = case["given"]["failing_stages"]
    look = signals.Looked(node="node", policy=container_gc.Policy(), errors={one: f"{one} failed" for one in failing})
    stages = plan.judged(look, Pods(known=()), look.policy, _FIRST)
    (finished,) = (
        one for one in DECIDER.decide(DECIDER.initial, look, _FIRST) if isinstance(one, container_gc.RunFinished)
    )
    found = {
        "stages_run": [one.stage for one in stages],
        "returns_error": bool(finished.error),
        "error_count": len(plan.errors(stages)),
    }
    return differences(case["expect"], found)


def _policy_validation(case: Case) -> Iterable[str]:
    return differences(case["expect"], {"valid": not policy.problem(_policy(case["given"]))})


def _periodic_loop(case: Case) -> Iterable[str]:
    state, told, kinds = DECIDER.initial, [], set()
    for number, result in enumerate(case["given"]["results"]):
        errors: dict[signals.Stage, str] = {"containers": "no listing"} if result == "error" else {}
        look = signals.Looked(node="node", policy=container_gc.Policy(), errors=errors)
        now = _FIRST + number * case["given"]["period_seconds"] * 1000
        events = DECIDER.decide(state, look, now)
        state = _folded(state, events)
        recorded = [one for one in events if isinstance(one, kube_events.Recorded)]
        told.append([one.reason for one in recorded])
        kinds |= {one.severity for one in recorded}
    return differences(case["expect"], {"events_after_each": told, "event_type": "".join(kinds)})


KINDS = {
    "evict_containers": _evict_containers,
    "evict_sandboxes": _evict_sandboxes,
    "evict_pod_log_directories": _log_directories,
    "dangling_container_log_links": _links,
    "garbage_collect_stages": _stages,
    "policy_validation": _policy_validation,
    "periodic_loop": _periodic_loop,
}
