"""A pod's state as `actions` and `phase` look at it. Pure.

Comes in: State. Goes out: `PodView`. Next: `plan`, `status`.
"""

from __future__ import annotations

from chronolet.pod.actions import ContainerView, PodView, SandboxView
from chronolet.pod.state import Container, Sandbox, State


def pod_view(state: State) -> PodView:
    """What the kubelet would find in the runtime for this pod."""
    seen = ((one.name, container_view(one, state.container_hashes.get(one.name, ""))) for one in state.containers)
    return PodView(
        policy=state.manifest.spec.restart_policy,
        apps=tuple(one.name for one in state.containers),
        host_network=state.manifest.spec.host_network,
        sandboxes=_sandboxes(state.sandbox, state.sandbox_hash),
        containers={name: view for name, view in seen if view.seen != "never_seen"},
    )


def container_view(one: Container, wanted_hash: str) -> ContainerView:
    """One container. What is being started or stopped counts as running until it is known not to."""
    if one.phase == "running":
        return ContainerView(seen="running", definition_changed=one.spec_hash != wanted_hash)
    if one.alive:
        return ContainerView(seen="running")
    if one.exit is None:
        return ContainerView(seen="never_seen")
    if one.stop is not None and one.stop.reason in ("SpecChanged", "SandboxGone"):
        # We stopped it in order to start it again, which the kubelet does in the same sync, whatever it exited with.
        return ContainerView(seen="created")
    return ContainerView(seen="exited", exit_code=one.exit.exit_code)


def _sandboxes(sandbox: Sandbox, wanted_hash: str) -> tuple[SandboxView, ...]:
    # A runtime that gives no address is not asked for another sandbox because of that.
    ip = sandbox.ip or "none"
    match sandbox.phase:
        case "absent":
            return ()
        case "failed":
            # Its number is used again: the newest sandbox that there was is the one before it.
            before = SandboxView(ready=False, attempt=sandbox.attempt - 1, ip=ip)
            return (before,) if sandbox.attempt else ()
        case _:
            ready = sandbox.phase == "running" and sandbox.spec_hash == wanted_hash and not sandbox.blocked
            return (SandboxView(ready=ready, attempt=sandbox.attempt, ip=ip),)
