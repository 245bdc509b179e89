"""What a life was, as far as a twin's must be the same: exactly, down to each event. Pure.

Comes in: the log, what the Docker Engine saw, statuses at way marks. Goes out: a `Story`, and the difference of two.

Left out are times, ids, addresses and hashes that hold the host port. Events of a pod are compared for each subject
on its own (two containers start side by side, in any order), KubeEvents for each object that they are about. Of
`pleg` it counts that a start, a death and a removal were told, each once: which other states of a container are seen
depends on when one looks, and the exit code of what died and was removed while no agent ran is beyond it. That one is
compared where it matters: in the pod's own event, and as Docker has it.
Signals are a set: a stop that is tried again sends its signal again, which cannot be known to have arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from chronolet.pod.api import PodStatus
from chronolet_schemas import kernel, kube_events, manifests, pleg, pod
from tests.e2e.journal import Line

_DIFFER = {"id", "uid", "ip", "at", "deadline", "milliseconds", "spec_hash", "sandbox_hash", "container_hashes"}
_DIFFER |= {"digest", "source", "manifest", "pod", "image_id", "sandbox_id"}


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A life. All texts with the uid replaced."""

    pod: dict[str, list[str]]
    """Subject -> its events."""
    told: dict[str, list[str]]
    """Field path -> KubeEvents."""
    seen: dict[str, list[str]]
    """Container and attempt -> what pleg saw."""
    manifests: list[str]
    troubles: list[str]
    """Events of the kernel that tell of something lost, refused or restarted."""
    docker: dict[str, list[str]]
    """Container name -> what the engine saw."""
    signals: list[str]
    statuses: dict[str, list[str]]
    """Way mark -> container statuses."""


def tell(
    lines: Iterable[Line],
    docker: Mapping[str, list[str]],
    signals: Iterable[str],
    statuses: Mapping[str, list[str]],
    uid: str,
) -> Story:
    """The story of the one pod with that uid."""
    story = Story(
        pod={},
        told={},
        seen={},
        manifests=[],
        troubles=[],
        docker={name.replace(uid, "UID"): actions for name, actions in docker.items()},
        signals=sorted(signal.replace(uid, "UID") for signal in signals),
        statuses={mark: [line.replace(uid, "UID") for line in lines] for mark, lines in statuses.items()},
    )
    for line in lines:
        _add(story, line, uid)
    return story


def _add(story: Story, line: Line, uid: str) -> None:
    event = line.event
    match event:
        case kube_events.Recorded():
            words = f"{event.severity} {event.reason}: {event.message}".replace(uid, "UID")
            story.told.setdefault(event.field_path, []).append(words)
        case pod.PodEvent():
            story.pod.setdefault(line.entry.subject, []).append(_words(event, uid))
        case pleg.ContainerStarted() | pleg.ContainerDied() | pleg.ContainerRemoved():
            story.seen.setdefault(f"{event.container} {event.attempt}", []).append(type(event).__name__)
        case manifests.PodApplied() | manifests.PodWithdrawn() | manifests.PodRefused():
            story.manifests.append(_words(event, uid))
        case kernel.LogStarted() | kernel.ShardTakenOver():
            pass
        case kernel.EffectsFailing() if event.about.startswith("keeper/"):
            pass  # the keeper measures the log: it says so when that met a dead server, and measures again
        case _ if line.entry.type.startswith("kernel."):
            story.troubles.append(_words(event, uid))


def _words(event: Any, uid: str) -> str:
    fields = {
        name: value
        for name, value in msgspec.structs.asdict(event).items()
        if name not in _DIFFER and not name.endswith("_at")
    }
    return f"{type(event).__name__} {fields}".replace(uid, "UID")


def status_lines(status: PodStatus | None) -> list[str]:
    """Of each container: what its status says, without times and ids."""
    return [_status_line(one) for one in status.container_statuses] if status else []


def _status_line(one: Any) -> str:
    state, last = one.state, one.last_state.terminated
    word = "running" if state.running else state.waiting.reason if state.waiting else "terminated"
    ended = f", last ended by {last.reason} {last.exit_code}" if last else ""
    return f"{one.name} {word}, ready {one.ready}, restarts {one.restart_count}{ended}"


def difference(twin: Story, other: Story) -> str:
    """Where the other one is not the same; empty if nowhere."""
    found = []
    for name in Story.__struct_fields__:
        mine, yours = getattr(twin, name), getattr(other, name)
        if isinstance(mine, dict):
            found += [
                f"{name} {key!r}: {yours.get(key)}\n    twin: {mine.get(key)}"
                for key in sorted({*mine, *yours})
                if mine.get(key) != yours.get(key)
            ]
        elif mine != yours:
            found.append(f"{name}: {yours}\n    twin: {mine}")
    return "\n".join(found)
