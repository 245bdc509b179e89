"""Creates and starts a container with a deterministic name; both are idempotent.

Input: a spec and the function that creates it. Output: the container's state, or `Refusal`. Next: `containers`,
`sandboxes`. Source: pkg/kubelet/dockershim/helpers.go (recoverFromCreationConflictIfNeeded).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chronolet.ports.runtime import labels
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.processes import Processes
from chronolet.ports.runtime.runtime import ContainerSpec, ContainerState, Refusal, SandboxSpec


def find_or_create(
    runtime: FencedRuntime, spec: SandboxSpec | ContainerSpec, make: Callable[[], str]
) -> ContainerState:
    """Return the container named `spec.name`, in any state; create it if it does not exist.

    Creation doubles as the existence check, so the usual case is a single call. An existing container with that name is
    ours if its labels name the same pod, uid, container and attempt. If it was created from the same inputs, it is our
    earlier work. If the inputs differ (the answer to an earlier request was lost), it is reused if it was started with
    the same definition, because an attempt runs only once; a container that was never started is replaced, and so is
    one that is half restored.
    """
    try:
        return just_created(spec, make())
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
        if holder.half_restored:
            runtime.remove(holder.id)
            return just_created(spec, make())
        ran = holder.state in ("running", "exited")
        if _made_from_the_same(spec, holder) or (ran and _same_definition(spec, holder)):
            return holder
        if holder.state == "running":
            problem = f"{spec.name}: container {holder.id} runs with another definition of the same attempt"
            raise Refusal("conflict", problem)
        runtime.remove(holder.id)
    return just_created(spec, make())


def just_created(spec: SandboxSpec | ContainerSpec, container_id: str) -> ContainerState:
    """Return the state of a container that this process created. It does no harm if something has started it since:
    starting a running container is a no-op.
    """
    return ContainerState(id=container_id, name=spec.name, labels=spec.labels, state="created")


def start_once(
    runtime: FencedRuntime, created: ContainerState, started: Callable[[str], None] = lambda _id: None
) -> ContainerState:
    """Start the container unless it was started before; return its state, running or already dead. `started` is called
    with its id as soon as it is running.

    A start whose reply was lost may have succeeded, so the runtime's present state decides. If the runtime does not
    report it, the Refusal is always `unavailable`, because the container may or may not be running. A container that
    the runtime has restored only in part, or not at all, is removed; raises HalfRestored.
    """
    if created.state != "created":
        return _whole(runtime, created, started)
    try:
        runtime.start(created.id)
    except Refusal as refusal:
        with _unknown_unless_seen():
            after = runtime.inspect(created.id)
        if refusal.kind == "interrupted" and after is not None and after.state == "created":
            raise _removed(runtime, created.id) from refusal
        if after is None or after.state not in ("running", "exited"):
            raise
        return _whole(runtime, after, started)
    started(created.id)
    with _unknown_unless_seen():
        return _whole(runtime, inspect_existing(runtime, created.id), lambda _id: None)


class HalfRestored(Refusal):
    """The runtime was killed while it started the container, and has lost its state. The container has been removed,
    and can be created again. Its processes may still run: the runtime does not know them.
    """

    def __init__(self, container_id: str) -> None:
        super().__init__(
            "not_found",
            f"container {container_id} was removed: the runtime was killed while it started it, and lost its state",
        )
        self.container_id = container_id


def repeat_if_half_restored(attempt: Callable[[], ContainerState], processes: Processes) -> ContainerState:
    """Return the result of `attempt`, which is called again after each HalfRestored. Raises Refusal."""
    while True:
        try:
            return attempt()
        except HalfRestored as restored:
            processes.kill_left(restored.container_id)


def _removed(runtime: FencedRuntime, container_id: str) -> HalfRestored:
    runtime.remove(container_id)
    return HalfRestored(container_id)


def _whole(runtime: FencedRuntime, found: ContainerState, started: Callable[[str], None]) -> ContainerState:
    """Return the container, which is running or dead, and call `started`."""
    if found.half_restored:
        raise _removed(runtime, found.id)
    started(found.id)
    return found


def start_if_needed(
    runtime: FencedRuntime, container_id: str, started: Callable[[str], None] = lambda _id: None
) -> ContainerState:
    """Like `start_once`, but inspects the container first, because an earlier start may have succeeded."""
    with _unknown_unless_seen():
        found = inspect_existing(runtime, container_id)
    return start_once(runtime, found, started)


@contextmanager
def _unknown_unless_seen() -> Iterator[None]:
    try:
        yield
    except Refusal as refusal:
        if refusal.kind == "not_found":
            raise
        raise Refusal("unavailable", str(refusal)) from refusal


def inspect_existing(runtime: FencedRuntime, container_id: str) -> ContainerState:
    """Return the container's present state. Raises Refusal if it does not exist."""
    found = runtime.inspect(container_id)
    if found is None:
        raise Refusal("not_found", f"container {container_id} vanished while it was being started")
    return found


def _made_from_the_same(spec: SandboxSpec | ContainerSpec, holder: ContainerState) -> bool:
    """Whether `spec` and `holder` come from the same request or, for containers, from the same inputs."""
    digest = spec.labels.get(labels.DIGEST)
    if digest is not None and labels.DIGEST in holder.labels:
        return digest == holder.labels[labels.DIGEST]
    return spec.labels[labels.CAUSE] == holder.labels.get(labels.CAUSE)


def _same_definition(spec: SandboxSpec | ContainerSpec, holder: ContainerState) -> bool:
    return spec.labels[labels.SPEC_HASH] == holder.labels.get(labels.SPEC_HASH)
