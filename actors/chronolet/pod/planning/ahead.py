"""Creates containers ahead of their start. Pure.

Input: State, the names of the containers that start first, now. Output: the next events of each container. Next:
`plan`.

A kubelet creates a container once its sandbox is running, and the next attempt once the last one is dead. But the
runtime can also create a container for a sandbox that is not running yet, and the next attempt while the current one
still exists; it only refuses to start them. So the first containers are created while their sandbox is starting, and
the successor of a container that failed a probe is created while that container is still being stopped. A container
that needs the pod's address is not created before the address is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from chronolet.pod.admission import admission
from chronolet.pod.planning import probing
from chronolet.pod.planning.backoff import wait_seconds
from chronolet.pod.planning.starting import ensure_image, policy
from chronolet.pod.planning.views import sandbox_good
from chronolet.pod.state import Container, State
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Container as Definition

LONGEST_GRACE_SECONDS = 60
"""The longest grace period for which a successor is created ahead. After five minutes, the collector removes a
container that was created but never started (container_gc/planning/verdicts.py)."""

_ADDRESSES = frozenset(("status.podIP", "status.podIPs"))


def steps(state: State, first: Collection[str]) -> Iterator[Event]:
    """Yield the next step of each container in `first` while the sandbox is starting, once the sandbox has been
    created.
    """
    if not state.sandbox.id:
        return
    for one in state.containers:
        if one.name in first and not one.blocked and admission.may_start(state, one):
            yield from _step(state, one)


def _step(state: State, one: Container) -> Iterator[Event]:
    definition = state.definition(one.name)
    if one.phase == "waiting":
        yield ensure_image(state, one, definition)
    elif one.phase == "image_ready" and not _is_requested(state, one, one.attempt) and _is_creatable(one, definition):
        yield _create_request(state, one, one.attempt)


def successor(state: State, one: Container, now: int) -> Iterator[Event]:
    """Create the next attempt of a container that is being stopped because a probe failed, if it restarts without a
    back-off, its definition is unchanged, its pull policy is not Always, and its grace period is at most
    LONGEST_GRACE_SECONDS. The worker first resolves the image's name again, because it may refer to another image now.
    """
    if one.phase != "stopping" or one.stop is None or _is_requested(state, one, one.attempt + 1):
        return
    if one.stop.grace_period_seconds > LONGEST_GRACE_SECONDS:
        return
    asked_at = one.stop.deadline - one.stop.grace_period_seconds * 1000
    again = one.stop.reason in probing.FAILED and state.manifest.spec.restart_policy != "Never"
    same = one.spec_hash == state.container_hashes.get(one.name, "") and one.image_id
    # The definition's pull policy may differ from that of the previous attempt; for an adopted container, none is
    # recorded.
    pulled = same and policy(state.definition(one.name)) == "Always"
    if (
        again
        and same
        and not pulled
        and not one.blocked
        and sandbox_good(state)
        and not wait_seconds(one.back_off, asked_at)
    ):
        request = _create_request(state, one, one.attempt + 1)
        yield replace(request, image=one.image, requested_at=now)


def _is_requested(state: State, one: Container, attempt: int) -> bool:
    """Whether the creation of this attempt in this sandbox was requested, or another creation is unfinished."""
    ahead = one.ahead
    if ahead is None:
        return False
    return ahead.pending or (ahead.attempt == attempt and ahead.sandbox_id == state.sandbox.id)


def _create_request(state: State, one: Container, attempt: int) -> pod.ContainerCreateRequested:
    return pod.ContainerCreateRequested(
        pod=state.pod,
        uid=state.uid,
        container=one.name,
        attempt=attempt,
        sandbox_id=state.sandbox.id,
        spec_hash=state.container_hashes.get(one.name, ""),
        image_id=one.image_id,
    )


def _is_creatable(one: Container, definition: Definition) -> bool:
    sources = (env.value_from for env in definition.env)
    fields = {source.field_ref.field_path for source in sources if source is not None and source.field_ref is not None}
    return one.image == definition.image and not fields & _ADDRESSES
