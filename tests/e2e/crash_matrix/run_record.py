"""A record of a run, which must equal that of the reference run exactly, down to each event. Pure.

Input: the log, Docker's events, statuses at checkpoints. Output: a `RunRecord`, and the differences between two
records.

These are compared in a different form, or not at all:

* Times, ids, addresses, and hashes that depend on the host port are omitted.
* A pod's events are compared separately for each subject, because two containers may start in any order; KubeEvents,
  for each object that they are about.
* `pleg` must report each start, death and removal once. Which other states of a container it sees depends on when it
  lists them, and it cannot know the exit code of a container that died and was removed while no agent was running. The
  exit code is compared in the pod's event and in Docker's.
* Signals are a set: a retried stop sends its signal again, since nothing shows that the first one arrived.
* A container is created ahead of its start only if there is time: an agent that starts when the sandbox is running
  creates none. So the events of creations are omitted; the record checks that each creation ended, and compares what
  the engine did for it.
* Only a running agent sees the end of a process before Docker reports it; the consequences are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from chronolet.pod.status.api import PodStatus
from chronolet_schemas import kernel, manifests, pleg, pod
from chronolet_schemas import kube_events as kube_event_schema
from tests.e2e.journal import Line

_DIFFER = {
    "id",
    "uid",
    "ip",
    "exec_id",
    "at",
    "deadline",
    "milliseconds",
    "spec_hash",
    "sandbox_hash",
    "container_hashes",
}
_DIFFER |= {"digest", "source", "manifest", "pod", "image_id", "sandbox_id", "node", "engine_id", "engine_root"}
_OF_NODE = {"Starting", "NodeReady", "FailedSync"}
"""Reasons of KubeEvents that are recorded once for each agent or log, or whenever a listing finds the engine dead."""

_CREATION = (pod.SandboxCreated, pod.ContainerCreateRequested, pod.ContainerCreated, pod.ContainerCreateFailed)
_OF_PROCESSES = (kernel.LogStarted, kernel.ProcessStarted, kernel.ShardTakenOver)
"""What each process writes: a run with a kill has more of them."""
_LEFT_OUT = (*_OF_PROCESSES, *_CREATION, pod.ContainerProcessEnded)

Plain = Callable[[str], str]


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a run, without ids and names that differ from run to run."""

    pod: dict[str, list[str]]
    """Events of the pod by subject."""
    kube_events: dict[str, list[str]]
    """KubeEvents by field path."""
    pleg_events: dict[str, list[str]]
    """Reports of pleg by container and attempt."""
    manifests: list[str]
    kernel_events: list[str]
    """Events of the kernel, except those in _OF_PROCESSES, and reports that an effect of the keeper is failing."""
    docker: dict[str, list[str]]
    """Docker's actions by container name."""
    signals: list[str]
    statuses: dict[str, list[str]]
    """Container statuses by checkpoint."""
    hooks: list[str] = []
    """What the hooks did, as seen from outside."""


def creations(lines: Iterable[Line]) -> tuple[int, list[str]]:
    """Return the number of containers created ahead of their start, and the creations without a recorded end."""
    created, requested = 0, dict[tuple[str, int], str]()
    for line in lines:
        match line.event:
            case pod.ContainerCreateRequested() as event:
                assert (event.container, event.attempt) not in requested, f"requested twice: {event}"
                requested[event.container, event.attempt] = f"{event.container} {event.attempt}"
            case pod.ContainerCreated() | pod.ContainerCreateFailed() as event:
                created += isinstance(event, pod.ContainerCreated)
                requested.pop((event.container, event.attempt), None)
            case _:
                pass
    return created, list(requested.values())


def of_last_attempt(record: RunRecord) -> RunRecord:
    """Return the record without what depends on timing: failed sandbox starts; Docker's actions before the last
    creation of each container; pleg's reports before the last start, or all of them for an attempt that never started;
    and repetitions of a KubeEvent. How often a sandbox start fails, and whether a listing sees its container before
    that is removed, varies from run to run.
    """
    sandbox = record.pod["sandbox"]
    failed = [number for number, text in enumerate(sandbox) if text.startswith(pod.SandboxStartFailed.__name__)]
    after = sandbox[failed[-1] + 1 :] if failed else sandbox
    docker = {name: actions[_last(actions, "create") :] for name, actions in record.docker.items()}
    started = pleg.ContainerStarted.__name__
    pleg_events = {name: text[_last(text, started) :] for name, text in record.pleg_events.items() if started in text}
    kube_events = {path: list(dict.fromkeys(text)) for path, text in record.kube_events.items()}
    return msgspec.structs.replace(
        record, pod={**record.pod, "sandbox": after}, docker=docker, pleg_events=pleg_events, kube_events=kube_events
    )


def _last(actions: Sequence[str], text: str) -> int:
    """Return the index of the last occurrence; 0 if there is none, so that everything is compared."""
    return max((number for number, action in enumerate(actions) if action == text), default=0)


def record_of(
    lines: Iterable[Line],
    docker: Mapping[str, list[str]],
    signals: Iterable[str],
    statuses: Mapping[str, list[str]],
    plain: Plain,
    *,
    hooks: Sequence[str] = (),
) -> RunRecord:
    """Return the record of the only pod of a node; `plain` replaces what differs from run to run."""
    record = RunRecord(
        pod={},
        kube_events={},
        pleg_events={},
        manifests=[],
        kernel_events=[],
        docker={plain(name): actions for name, actions in docker.items()},
        signals=sorted(map(plain, signals)),
        statuses={mark: list(map(plain, lines)) for mark, lines in statuses.items()},
        hooks=list(hooks),
    )
    for line in lines:
        if not isinstance(line.event, _LEFT_OUT):
            _add(record, line, plain)
    return record


def _add(record: RunRecord, line: Line, plain: Plain) -> None:
    event = line.event
    match event:
        case kube_event_schema.Recorded() if event.reason not in _OF_NODE:
            text = f"{event.severity} {event.reason}: {event.message}"
            record.kube_events.setdefault(event.field_path, []).append(plain(text))
        case pod.ExitRead():
            # This is read concurrently with the container's next attempt.
            record.pod.setdefault(f"exit/{event.container}/{event.attempt}", []).append(plain(_text(event)))
        case pod.PodEvent():
            record.pod.setdefault(line.entry.subject, []).append(plain(_text(event)))
        case pleg.ContainerStarted() | pleg.ContainerDied() | pleg.ContainerRemoved():
            reported = record.pleg_events.setdefault(f"{event.container} {event.attempt}", [])
            if isinstance(event, pleg.ContainerDied) and not reported:
                reported.append(
                    pleg.ContainerStarted.__name__
                )  # it ran while no agent did: its death implies its start
            reported.append(type(event).__name__)
        case manifests.PodApplied() | manifests.PodWithdrawn() | manifests.PodRefused():
            record.manifests.append(plain(_text(event)))
        case kernel.EffectsFailing() if event.about.startswith("keeper/"):
            pass  # the keeper's measurement met a dead server; it is repeated
        case _ if line.entry.type.startswith("kernel."):
            record.kernel_events.append(plain(_text(event)))


def _text(event: Any) -> str:
    fields = {
        name: value
        for name, value in msgspec.structs.asdict(event).items()
        if name not in _DIFFER and not name.endswith(("_at", "_milliseconds"))
    }
    return f"{type(event).__name__} {fields}"


def status_lines(status: PodStatus | None) -> list[str]:
    """Return the status of each container, without times and ids."""
    if status is None:
        return []
    return [_status_line(one) for one in (*status.init_container_statuses, *status.container_statuses)]


def _status_line(one: Any) -> str:
    state, last = one.state, one.last_state.terminated
    text = "running" if state.running else state.waiting.reason if state.waiting else "terminated"
    ended = f", last ended by {last.reason} {last.exit_code}" if last else ""
    return f"{one.name} {text}, ready {one.ready}, restarts {one.restart_count}{ended}"


def difference(reference: RunRecord, other: RunRecord) -> str:
    """Return the fields that differ; empty if none differs."""
    differences = []
    for name in RunRecord.__struct_fields__:
        expected, found = getattr(reference, name), getattr(other, name)
        if isinstance(expected, dict):
            differences += [
                f"{name} {key!r}: {found.get(key)}\n    reference: {expected.get(key)}"
                for key in sorted({*expected, *found})
                if expected.get(key) != found.get(key)
            ]
        elif expected != found:
            differences.append(f"{name}: {found}\n    reference: {expected}")
    return "\n".join(differences)
