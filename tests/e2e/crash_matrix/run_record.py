"""What a life was, as far as a twin's must be the same: exactly, down to each event. Pure.

Input: the log, what the Docker Engine saw, statuses at way marks. Output: a `Story`, and the difference of two.

Left out are times, ids, addresses and hashes that hold the host port. Events of a pod are compared for each subject
on its own (two containers start side by side, in any order), KubeEvents for each object that they are about. Of
`pleg` it counts that a start, a death and a removal were told, each once: which other states of a container are seen
depends on when one looks, and the exit code of what died and was removed while no agent ran is beyond it. That one is
compared where it matters: in the pod's own event, and as Docker has it.
Signals are a set: a stop that is tried again sends its signal again, which cannot be known to have arrived.
A creation ahead of a start is one attempt, made if there is time for it: an agent that comes back when the sandbox runs
makes none. So its events are left out; that each came to an end is checked, and what the engine made of it is compared.
That a process has ended, before the engine says so, only an agent sees that is there; what it leads to is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from chronolet.pod.status.api import PodStatus
from chronolet_schemas import kernel, kube_events, manifests, pleg, pod
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
_DIFFER |= {"digest", "source", "manifest", "pod", "image_id", "sandbox_id"}
_OF_THE_NODE = {"Starting", "NodeReady", "FailedSync"}
"""Reasons of what is told once for each agent or log, or whenever a listing meets a dead engine."""

_CREATION = (pod.SandboxCreated, pod.ContainerCreateRequested, pod.ContainerCreated, pod.ContainerCreateFailed)
_LEFT_OUT = (kernel.LogStarted, kernel.ShardTakenOver, *_CREATION, pod.ContainerProcessEnded)

Plain = Callable[[str], str]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A life. All texts are plain."""

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
    hooks: list[str] = []
    """What the hooks did, as the world outside saw it."""


def creations(lines: Iterable[Line]) -> tuple[int, list[str]]:
    """How many containers were created ahead of their start, and the creations that nobody has heard the end of."""
    created, asked = 0, dict[tuple[str, int], str]()
    for line in lines:
        match line.event:
            case pod.ContainerCreateRequested() as event:
                assert (event.container, event.attempt) not in asked, f"asked for twice: {event}"
                asked[event.container, event.attempt] = f"{event.container} {event.attempt}"
            case pod.ContainerCreated() | pod.ContainerCreateFailed() as event:
                created += isinstance(event, pod.ContainerCreated)
                asked.pop((event.container, event.attempt), None)
            case _:
                pass
    return created, list(asked.values())


def of_the_last_try(story: Story) -> Story:
    """Without what became of sandboxes that could not be started: how often that was tried is chance, and so is whether
    a listing saw what was made for them and, at the next one, that it was gone, under a name that may never start.
    """
    sandbox = story.pod["sandbox"]
    failed = [number for number, words in enumerate(sandbox) if words.startswith(pod.SandboxStartFailed.__name__)]
    after = sandbox[failed[-1] + 1 :] if failed else sandbox
    docker = {name: actions[_last(actions, "create") :] for name, actions in story.docker.items()}
    started = pleg.ContainerStarted.__name__
    seen = {name: words[_last(words, started) :] for name, words in story.seen.items() if started in words}
    told = {path: list(dict.fromkeys(words)) for path, words in story.told.items()}
    return msgspec.structs.replace(story, pod={**story.pod, "sandbox": after}, docker=docker, seen=seen, told=told)


def _last(actions: Sequence[str], word: str) -> int:
    """Where it stands; 0 if nowhere, so that the whole is compared."""
    return max((number for number, action in enumerate(actions) if action == word), default=0)


def tell(
    lines: Iterable[Line],
    docker: Mapping[str, list[str]],
    signals: Iterable[str],
    statuses: Mapping[str, list[str]],
    plain: Plain,
    *,
    hooks: Sequence[str] = (),
) -> Story:
    """The story of the one pod of that node; `plain` puts general words for what no other life has."""
    story = Story(
        pod={},
        told={},
        seen={},
        manifests=[],
        troubles=[],
        docker={plain(name): actions for name, actions in docker.items()},
        signals=sorted(map(plain, signals)),
        statuses={mark: list(map(plain, lines)) for mark, lines in statuses.items()},
        hooks=list(hooks),
    )
    for line in lines:
        if not isinstance(line.event, _LEFT_OUT):
            _add(story, line, plain)
    return story


def _add(story: Story, line: Line, plain: Plain) -> None:
    event = line.event
    match event:
        case kube_events.Recorded() if event.reason not in _OF_THE_NODE:
            words = f"{event.severity} {event.reason}: {event.message}"
            story.told.setdefault(event.field_path, []).append(plain(words))
        case pod.ExitRead():
            # It is read while the container goes on to whatever comes next.
            story.pod.setdefault(f"exit/{event.container}/{event.attempt}", []).append(plain(_words(event)))
        case pod.PodEvent():
            story.pod.setdefault(line.entry.subject, []).append(plain(_words(event)))
        case pleg.ContainerStarted() | pleg.ContainerDied() | pleg.ContainerRemoved():
            seen = story.seen.setdefault(f"{event.container} {event.attempt}", [])
            if isinstance(event, pleg.ContainerDied) and not seen:
                seen.append(pleg.ContainerStarted.__name__)  # it came and went while no agent ran: died implies started
            seen.append(type(event).__name__)
        case manifests.PodApplied() | manifests.PodWithdrawn() | manifests.PodRefused():
            story.manifests.append(plain(_words(event)))
        case kernel.EffectsFailing() if event.about.startswith("keeper/"):
            pass  # the keeper measures the log: it says so when that met a dead server, and measures again
        case _ if line.entry.type.startswith("kernel."):
            story.troubles.append(plain(_words(event)))


def _words(event: Any) -> str:
    fields = {
        name: value
        for name, value in msgspec.structs.asdict(event).items()
        if name not in _DIFFER and not name.endswith(("_at", "_milliseconds"))
    }
    return f"{type(event).__name__} {fields}"


def status_lines(status: PodStatus | None) -> list[str]:
    """Of each container: what its status says, without times and ids."""
    if status is None:
        return []
    return [_status_line(one) for one in (*status.init_container_statuses, *status.container_statuses)]


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
