"""Runs the cases of probes.json against the prober's decider and its helpers, and against `started` and `ready` in the
pod's status.

A tick of the kubelet's worker becomes the messages that the pod and the ProbeWorker send at that time. The pod reports
that a container is to be probed, counts as started, has exited, is waiting, or is to be stopped. The worker reports an
outcome if it is running and its first attempt is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chronolet.adapters.http.texts import url
from chronolet.pod.planning import probing
from chronolet.pod.state import Container as PodContainer
from chronolet.pod.state import ContainerPhase, Exit, Probing, definitions
from chronolet.pod.state import State as PodState
from chronolet.pod.status.status import pod_status
from chronolet.ports.pods.probes import HttpTarget, Target
from chronolet.prober import schedule, signals, wanted
from chronolet.prober.decider import DECIDER
from chronolet.prober.state import State
from chronolet.prober.targets import target
from chronolet_schemas import pod, prober
from chronolet_schemas.envelope import Event, Message
from chronolet_schemas.podspec import (
    Container,
    ContainerPort,
    HTTPGetAction,
    ObjectMeta,
    Pod,
    PodSpec,
    Probe,
    RestartPolicy,
)
from tests.conformance.drivers.probes.probed_pods import ProbedPod
from tests.conformance.outcome import Case, as_sets, differences

_NAMES: dict[str, prober.ProbeName] = {"liveness": "Liveness", "readiness": "Readiness", "startup": "Startup"}
_POD = "default/web"


class Ticks:
    """One probe and its state."""

    def __init__(self, given: Case) -> None:
        self.state: State | None = DECIDER.initial
        self._given = given
        self._probe = _NAMES[given["probe_type"]]
        self._known = ""
        self.events: Sequence[Event] = ()
        """The events of the last tick."""
        self._thresholds = (given["success_threshold"], given["failure_threshold"])

    def tick(self, step: Case) -> dict[str, Any]:
        """Handle one step, and return its values in the form of its expectation."""
        now, events = step["t_seconds"] * 1000, list[Event]()
        for message in self._of_pod(step):
            events += self._decided(message, now)
        workers = [one for one in _workers(self.state) if one.from_at <= now]
        for effect in workers:
            outcome = signals.ProbeOutcome(
                intent=effect.intent,
                outcome=step["handler_result"],
                at=now,
                milliseconds=1,
                output=step.get("output", ""),
            )
            events += self._decided(outcome, now)
        self.events = events
        state = self.state or State()
        ended = any(isinstance(event, prober.ProbingEnded) for event in events)
        return {
            "keep_going": self.state is not None and not ended,
            "handler_called": bool(workers),
            "published": state.result or None,
            "updates": [event.result for event in events if isinstance(event, prober.ResultChanged)],
            "on_hold": state.held,
            "run_count": state.consecutive,
        }

    def as_expected(self, expect: Case) -> Case:
        """Return the expectation with `run_count` capped at the threshold, because the decider counts no further."""
        word = 1 if self.state and self.state.last == "failure" else 0
        return expect | {"run_count": min(expect["run_count"], self._thresholds[word])}

    def _decided(self, message: Message, now: int) -> Sequence[Event]:
        if self.state is None:
            return ()
        events = DECIDER.decide(self.state, message, now)
        for event in events:
            self.state = DECIDER.evolve(self.state or DECIDER.initial, event)
        return events

    def _of_pod(self, step: Case) -> Iterator[Message]:
        """Yield the pod's messages about a step. If the pod has finished, it withdraws the probe; otherwise there are
        no messages unless pod and container have a status.
        """
        container, phase = step["container"], step["pod_phase"]
        if phase in ("Failed", "Succeeded"):
            yield pod.ProbingWithdrawn(probe=self._probe, **_container_fields(container))
        elif phase is not None and container is not None:
            yield from self._of_container(container)
            if step.get("deletion_requested"):
                yield pod.ContainerStopRequested(
                    id=container["id"],
                    grace_period_seconds=30,
                    deadline=0,
                    reason="Deleted",
                    **_container_fields(container),
                )

    def _of_container(self, container: Case) -> Iterator[Message]:
        if container["id"] != self._known:
            self._known = container["id"]
            yield self._request(container)
        if container["state"] == "waiting":
            yield pod.RestartScheduled(
                at=0, back_off_seconds=0, next_back_off_seconds=0, **_container_fields(container)
            )
        elif container["state"] == "terminated":
            yield pod.ContainerExited(
                id=container["id"],
                exit_code=container.get("exit_code", 0),
                reason="Completed",
                started_at=0,
                finished_at=0,
                **_container_fields(container),
            )
        elif container["started"]:
            started_at = container["started_at_seconds"] * 1000
            yield pod.ContainerProbed(
                id=container["id"],
                started_at=started_at,
                probe="Startup",
                result="success",
                **_container_fields(container),
            )

    def _request(self, container: Case) -> pod.ProbingRequested:
        """Return the request that the pod makes once this container is running."""
        given = self._given
        mine = Probe(
            initial_delay_seconds=given["initial_delay_seconds"],
            period_seconds=given["period_seconds"],
            success_threshold=given["success_threshold"],
            failure_threshold=given["failure_threshold"],
        )
        probes = {given["probe_type"]: mine}
        if not container["started"]:
            probes.setdefault("startup", Probe())  # a container that is not started waits for its startup probe
        run: dict[str, Any] = {"id": container["id"], "started_at": container["started_at_seconds"] * 1000}
        passed = (Probing(probe="Startup", digest="old", result="success", **run),) if container["started"] else ()
        state = _pod_of(
            probes,
            role="restartable_init" if given.get("container_is_restartable_init") else "app",
            policy=given["pod_restart_policy"],
            phase="running",
            probing=passed,
            attempt=_container_fields(container)["attempt"],
            **run,
        )
        requests = [one for one in probing.steps(state, (probing.KIND,)) if isinstance(one, pod.ProbingRequested)]
        return next(one for one in requests if one.probe == self._probe)


def _container_fields(container: Case | None) -> dict[str, Any]:
    attempt = int(container["id"].rpartition("-")[2]) - 1 if container else 0
    return {"pod": _POD, "uid": "u1", "container": "app", "attempt": attempt}


def _worker_sequence(case: Case) -> Iterable[str]:
    worker = Ticks(case["given"])
    for number, step in enumerate(case["steps"]):
        found = worker.tick(step)
        yield from differences(worker.as_expected(step["expect"]), found, f"step {number}: ")


def _start_jitter(case: Case) -> Iterable[str]:
    """Compare the delays from the pod's request to the worker's first attempt, for containers that were already running
    when the agent started. The case states how long ago the agent started.

    The attempts are spread over a period, whether a container had been running for ten periods or for only part of one.
    """
    given, now = case["given"], _NOW
    period = given["period_seconds"] * 1000
    agent_began = now - given["kubelet_age_seconds"] * 1000
    for ran, began in (("long", agent_began - 10 * period), ("a moment", agent_began - period // 2)):
        requests = (
            _requested(id=f"k{n}", started_at=began, period_milliseconds=period, **_container_fields(None))
            for n in range(1_000)
        )
        age = given["kubelet_age_seconds"] * 1000
        sleeps = [
            schedule.begins_at(worker, now, process_age=age) - now for one in requests for worker in _begun(one, now)
        ]
        found = {
            "random_sleep": len(sleeps) == 1_000 and len(set(sleeps)) > len(sleeps) // 2,
            "sleep_min_seconds": min(sleeps) // 1000,
            "sleep_max_seconds": -(-max(sleeps) // 1000),
        }
        yield from differences(case["expect"], found, f"containers that had run for {ran}: ")


_NOW = 1_700_000_000_000
_PHASES: dict[str, ContainerPhase] = {"running": "running", "waiting": "waiting", "terminated": "exited"}
_ROLES: dict[str, str] = {"init": "init_containers", "restartable_init": "init_containers", "app": "containers"}


def _container_status_flags(case: Case) -> Iterable[str]:
    """Compare `started` and `ready` in the pod's status, and whether the container is probed immediately."""
    state = _pod_with(case["given"])
    status = pod_status(state)
    (one,) = (*status.init_container_statuses, *status.container_statuses)
    found = {
        "started": one.started,
        "ready": one.ready,
        "triggers_immediate_readiness_probe": _probed_immediately(state),
    }
    return differences(case["expect"], found)


def _pod_with(given: Case) -> PodState:
    """Return a pod with one container, whose probes have the `cached` results."""
    run: dict[str, Any] = {"id": "k0", "started_at": _NOW - 5_000}
    exited = Exit(attempt=0, id="k0", exit_code=given.get("exit_code", 1), reason="Error")
    return _pod_of(
        {name: Probe() for name in given["probes"]},
        role=given.get("role", "app"),
        phase=_PHASES[given["state"]],
        exit=exited if given["state"] == "terminated" else None,
        probing=tuple(
            Probing(probe=_NAMES[name], digest="d", result=result, **run) for name, result in given["cached"].items()
        ),
        **run,
    )


def _pod_of(probes: Mapping[str, Probe], *, role: str, policy: RestartPolicy = "Always", **fields: Any) -> PodState:
    """Return a pod with one container that has these probes; `fields` are fields of the container's state."""
    defined: dict[str, Any] = {f"{name}_probe": probe for name, probe in probes.items()}
    definition = Container(name="app", restart_policy="Always" if role == "restartable_init" else None, **defined)
    containers: dict[str, Any] = {_ROLES[role]: (definition,)}
    manifest = Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(restart_policy=policy, **containers))
    ((kind, _),) = definitions(manifest)
    one = PodContainer(name="app", kind=kind, **fields)
    return PodState(pod=_POD, uid="u1", digest="d", manifest=manifest, containers=(one,))


def _probed_immediately(state: PodState) -> bool:
    workers = [
        worker
        for request in probing.steps(state, (probing.KIND,))
        if isinstance(request, pod.ProbingRequested) and request.probe == "Readiness"
        for worker in _begun(request, _NOW)
    ]
    return any(schedule.begins_at(worker, _NOW) == _NOW for worker in workers)


def _begun(request: pod.ProbingRequested, now: int) -> Sequence[wanted.RunProbe]:
    """Return the workers that result from the pod's request."""
    state: State | None = DECIDER.initial
    for event in DECIDER.decide(DECIDER.initial, request, now):
        state = DECIDER.evolve(state or DECIDER.initial, event)
    return _workers(state)


def _workers(state: State | None) -> Sequence[wanted.RunProbe]:
    effects = DECIDER.outstanding(state) if state else ()
    return [one for one in effects if isinstance(one, wanted.RunProbe)]


def _requested(**changes: Any) -> pod.ProbingRequested:
    """Return a pod's request with these fields, and default values for all others."""
    fields: dict[str, Any] = {
        "digest": "d",
        "ip": "10.0.0.5",
        "restarts": "Always",
        "started": True,
        "field": "spec.containers{app}",
        "probe": "Liveness",
        "definition": Probe(),
    }
    return pod.ProbingRequested(**fields | changes)


def _worker_set(case: Case) -> Iterable[str]:
    """Compare the probes of pods whose containers are all running."""
    pods: dict[str, ProbedPod] = {}
    for number, step in enumerate(case["steps"]):
        match step["op"]:
            case "add_pod":
                described = step["pod"]
                if described["uid"] in pods:
                    pods[described["uid"]].add(described)
                else:
                    pods[described["uid"]] = ProbedPod(described)
            case "stop_liveness_and_startup":
                pods[step["uid"]].stop()
            case "cleanup_pods":
                for uid in pods.keys() - set(step["desired_uids"]):
                    pods.pop(uid).remove()
            case "remove_pod":
                if step["uid"] in pods:
                    pods.pop(step["uid"]).remove()
            case other:
                raise NotImplementedError(f"nothing implements the step {other} yet")
        found = {"workers": sorted(name for one in pods.values() for name in one.workers())}
        yield from differences(as_sets(step["expect"], "workers"), found, f"step {number}: ")


def _probe_spec(case: Case) -> Iterable[str]:
    """Check that a container without a probe counts as if its probe had succeeded, and that no worker is requested."""
    assert case["given"]["probe"] is None
    probes = probing.probes_of(Container(name="app"))
    good = all(probing.flags(probes, {}, runs=True))
    return differences(case["expect"], {"result": "success" if good else "failure", "error": bool(probes)})


def _target(given: Case, action: HTTPGetAction) -> Target | str:
    """Return the target that the worker gets for an HTTP probe, with the port resolved by the pod; a text if the
    definition is wrong.
    """
    ports = [ContainerPort(name=one["name"], container_port=one["container_port"]) for one in given["ports"]]
    probe = probing.resolved(Container(ports=tuple(ports)), Probe(http_get=action))
    return target(probe, container_id="k0", ip=given.get("pod_ip", "10.0.0.5"))


def _port_resolution(case: Case) -> Iterable[str]:
    probed = _target(case["given"], HTTPGetAction(port=case["given"]["port"]))
    found = {"port": probed.request.port} if isinstance(probed, HttpTarget) else {"error": True}
    return differences(case["expect"], found)


def _http_url(case: Case) -> Iterable[str]:
    probed = _target(case["given"], HTTPGetAction(**case["given"]["http_get"]))
    return differences(case["expect"], {"url": url(probed.request)} if isinstance(probed, HttpTarget) else {})


KINDS = {
    "http_url": _http_url,
    "port_resolution": _port_resolution,
    "probe_spec": _probe_spec,
    "container_status_flags": _container_status_flags,
    "worker_set": _worker_set,
    "worker_sequence": _worker_sequence,
    "start_jitter": _start_jitter,
}
