"""One container of a deterministic name: made, or found as made before; then run, once.

Comes in: a spec, and how to make it. Goes out: what the runtime has. `Refusal` says what stands in the way. Next:
`effects`. Answers to pkg/kubelet/dockershim/helpers.go (recoverFromCreationConflictIfNeeded).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chronolet.ports.runtime import labels
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.runtime import ContainerSpec, ContainerState, Refusal, SandboxSpec


def found_or_made(runtime: FencedRuntime, spec: SandboxSpec | ContainerSpec, make: Callable[[], str]) -> ContainerState:
    """The container of `spec.name`, in whatever state.

    Creating it is the test for whether it exists: that is one call in the usual case. What holds the name is ours if
    its labels name the same pod, uid, container and attempt. Made from the same, it is our own earlier work. Made
    otherwise (whose answer was lost), it is gone on with if it came to run by the same definition, for one attempt
    runs once; one that was never started gives way to a new one.
    """
    try:
        return fresh(spec, make())
    except Refusal as refusal:
        if refusal.kind != "conflict":
            raise
        conflict = refusal
    holder = runtime.inspect(spec.name)
    if holder is not None:
        if difference := labels.differing(spec.labels, holder.labels):
            raise Refusal(
                "conflict", f"{spec.name}: the name is held by container {holder.id}: {difference}; remove it"
            )
        if holder.state in ("unknown", "removed"):
            raise Refusal("conflict", f"{spec.name}: container {holder.id} is paused or being removed") from conflict
        came_to_run = holder.state in ("running", "exited")
        if _made_from_the_same(spec, holder) or (came_to_run and _same_definition(spec, holder)):
            return holder
        if holder.state == "running":
            said = f"{spec.name}: container {holder.id} runs by another definition of the same attempt"
            raise Refusal("conflict", said)
        runtime.remove(holder.id)
    return fresh(spec, make())


def fresh(spec: SandboxSpec | ContainerSpec, container_id: str) -> ContainerState:
    """What this process has made. It is not asked whether somebody has started it since: a second start is none."""
    return ContainerState(id=container_id, name=spec.name, labels=spec.labels, state="created")


def ran(
    runtime: FencedRuntime, made: ContainerState, begun: Callable[[str], None] = lambda _id: None
) -> ContainerState:
    """Starts it if it was never started; as it is then, running or dead already. `begun` is told its id as soon as it
    runs.

    A start whose answer was lost may have worked: what counts is what the runtime says now. Where it does not say it,
    the Refusal is `unavailable`, whatever the runtime called it: nobody knows yet whether the container runs.
    """
    if made.state != "created":
        begun(made.id)
        return made
    try:
        runtime.start(made.id)
    except Refusal:
        with _unknown_unless_seen():
            after = runtime.inspect(made.id)
        if after is None or after.state not in ("running", "exited"):
            raise
        begun(made.id)
        return after
    begun(made.id)
    with _unknown_unless_seen():
        return inspected(runtime, made.id)


def ran_after_all(
    runtime: FencedRuntime, container_id: str, begun: Callable[[str], None] = lambda _id: None
) -> ContainerState:
    """As `ran`, of a container whose start may have worked."""
    with _unknown_unless_seen():
        found = inspected(runtime, container_id)
    return ran(runtime, found, begun)


@contextmanager
def _unknown_unless_seen() -> Iterator[None]:
    try:
        yield
    except Refusal as refusal:
        if refusal.kind == "not_found":
            raise
        raise Refusal("unavailable", str(refusal)) from refusal


def inspected(runtime: FencedRuntime, container_id: str) -> ContainerState:
    """As it is now. Refusal if it is not."""
    found = runtime.inspect(container_id)
    if found is None:
        raise Refusal("not_found", f"container {container_id} vanished while it was being started")
    return found


def _made_from_the_same(spec: SandboxSpec | ContainerSpec, holder: ContainerState) -> bool:
    """By the same request, or, of a container, by another one for the same."""
    digest = spec.labels.get(labels.DIGEST)
    if digest is not None and labels.DIGEST in holder.labels:
        return digest == holder.labels[labels.DIGEST]
    return spec.labels[labels.CAUSE] == holder.labels.get(labels.CAUSE)


def _same_definition(spec: SandboxSpec | ContainerSpec, holder: ContainerState) -> bool:
    return spec.labels[labels.SPEC_HASH] == holder.labels.get(labels.SPEC_HASH)
