"""What the deciders take from the settings: the policy of each actor kind, and the kinds that decide with it. Pure.

Input: settings, and the machine's architecture. Output: policies; `Kind`s without workers. Next: `composition.kinds`,
which adds the workers; `history`, which decides recorded inputs again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from chronolet.container_gc import actor as container_gc
from chronolet.devices import actor as devices
from chronolet.devices.context import Policy as DevicesPolicy
from chronolet.image_gc import actor as image_gc
from chronolet.keeper import actor as keeper
from chronolet.keeper.policy import Policy as KeeperPolicy
from chronolet.kernel.kind import Kind
from chronolet.kube_events import actor as kube_events
from chronolet.kube_events.policy import RETRY_PAUSE, Rules
from chronolet.kube_events.policy import Policy as KubeEventsPolicy
from chronolet.manifests import actor as manifests
from chronolet.node.settings.settings import Settings
from chronolet.pleg import actor as pleg
from chronolet.pod import actor as pod
from chronolet.pod.admission.node_policy import Policy as PodPolicy
from chronolet.pod.planning import backoff
from chronolet.ports.kube_sinks import LOCAL_BATCHES
from chronolet.prober import actor as prober
from chronolet.qos import actor as qos
from chronolet.qos.system import architecture

_LOCAL_BACKLOG = 10_000
"""Maximum backlog of the local sinks (the node's Redis, the agent's log), unless `event_stream_length` is larger. These
sinks keep up with the recorded events: an event dropped from a backlog of this size would have been trimmed from the
stream immediately anyway.
"""


def deciding(
    settings: Settings,
    machine: str,
    *,
    keeping: KeeperPolicy = KeeperPolicy(),  # noqa: B008 - frozen
    event_pause: int = RETRY_PAUSE,
) -> tuple[Kind[Any], ...]:
    """Return all kinds as a process with these settings decides, without workers.

    `machine`: the kernel's name of the architecture, such as `x86_64`. `keeping`, `event_pause` (milliseconds): as in
    `Tuning`, with the values of every node outside of tests.
    """
    return (
        manifests.kind(),
        pod.kind(
            participants=settings.participants, policy=pod_policy(settings, machine), limits=back_off_limits(settings)
        ),
        pleg.kind(node=settings.node, policy=settings.probe_kill_policy),
        prober.kind(),
        container_gc.kind(),
        image_gc.kind(),
        devices.kind(devices_policy(settings)),
        qos.kind(),
        kube_events.kind(policy=event_policy(settings, event_pause)),
        keeper.kind(policy=keeper_policy(settings, keeping)),
    )


def labels(settings: Settings, machine: str) -> Mapping[str, str]:
    """Return the node's labels: the well-known ones, and those from the settings, which take precedence."""
    return {
        "kubernetes.io/arch": architecture(machine),
        "kubernetes.io/hostname": settings.node,
        "kubernetes.io/os": "linux",
        **settings.node_labels,
    }


def pod_policy(settings: Settings, machine: str) -> PodPolicy:
    """Return the node's own admission rules, which are applied to a pod before any other kind decides."""
    return PodPolicy(
        name=settings.node,
        labels=labels(settings, machine),
        node_affinity=settings.node_affinity,
        allowed_unsafe_sysctls=settings.allowed_unsafe_sysctls,
    )


def back_off_limits(settings: Settings) -> backoff.Limits:
    """Return the limits of the back-off of crashing containers."""
    return backoff.limits(settings.max_container_restart_period)


def devices_policy(settings: Settings) -> DevicesPolicy:
    """Return how devices are given to containers."""
    return DevicesPolicy(
        node=settings.node,
        wait_for_resources=settings.wait_for_resources,
        topology=settings.topology_manager_policy,
    )


def event_policy(settings: Settings, pause: int) -> KubeEventsPolicy:
    """Return the delivery rules of the sinks that the settings select; `pause`: before a retry, in milliseconds."""
    local = Rules(backlog=max(_LOCAL_BACKLOG, settings.event_stream_length), pause=pause)
    remote = Rules(backlog=settings.event_backlog, pause=pause)
    rules = {name: replace(local, batch=size) for name, size in LOCAL_BATCHES.items() if name in settings.event_sinks}
    if settings.event_webhook_url:
        rules["webhook"] = remote
    if settings.event_api_server:
        rules["kubernetes"] = remote
    return KubeEventsPolicy(sinks=rules)


def keeper_policy(settings: Settings, policy: KeeperPolicy) -> KeeperPolicy:
    """Return when the log and probe outcomes are archived, and how long; `policy`: as in `Tuning`."""
    return replace(policy, node=settings.node, probes_max_age=settings.probe_history_max_age)
