"""Adoption: records in a new log the containers that already exist on the node (found by their labels), and the pods
and Secrets stored in the state folder.

Input: a call from the kernel before any shard of the log is acquired. Output: `pleg.AdoptContainers`, `pod.AdoptPod`
for each pod, and `manifests.AdoptPods`, in mailboxes that have no reader yet, so that they are decided before any
message from a source or the runtime. A log that has lost its last entries is completed in the same way, but only with
what it lacks; `manifests.DeletePods` then removes the pods of `apply` that have ended since. Containers and the state
folder are not changed. Next: `pleg.decider`, `pod.admission.adoption`, `manifests.decider`. Corresponds to a restart of
the kubelet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.store import Store
from chronolet.manifests import state as manifests_state
from chronolet.manifests.actor import NODE
from chronolet.manifests.secrets import names as secret_names
from chronolet.manifests.state import APPLY
from chronolet.pleg import actor as pleg_actor
from chronolet.pod import state as pod_state
from chronolet.pod.admission.adoption import knows_less
from chronolet.pod.effects import UNKNOWN_EXIT, exit_reason
from chronolet.ports.machine.host import Host
from chronolet.ports.pods.secrets import FoundSecret, Secrets
from chronolet.ports.pods.specs import KeptSpec, Specs
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal, Runtime
from chronolet_schemas import codec, kernel, manifests, pleg, pod, registry
from chronolet_schemas.envelope import Command
from chronolet_schemas.keys import Shard

_Found = Mapping[str, Sequence[tuple[labels.Owner, ContainerState]]]
"""The containers of each pod, by its uid."""

States = Mapping[str, Mapping[str, Any]]
"""The states folded from the log, by kind and key."""


class _Kept(NamedTuple):
    """What to adopt from the state folder. `chosen`: the pods to adopt; `left`: a line for each container or pod that
    is not adopted; `endings`: the terminations that had begun, by the pod's uid.
    """

    chosen: Sequence[KeptSpec]
    left: Sequence[str]
    secrets: Sequence[FoundSecret]
    endings: Mapping[str, pod.Ending]


def can_adopt(kinds: Collection[str]) -> bool:
    """Return whether a process that hosts these kinds may adopt: it must host both `manifests` and `pod`."""
    return {"manifests", "pod"} <= set(kinds)


class Adoption:
    """Sends the adoption commands. Call `adopt` until it returns an empty string: repeated commands are deduplicated
    by their request ids.
    """

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        specs: Specs,
        node: str,
        *,
        secrets: Secrets,
        host: Host,
        states: Callable[[], States],
    ) -> None:
        """`states` folds the states of `manifests` and `pod` from the log."""
        self._store = store
        self._runtime = runtime
        self._specs = specs
        self._node = node
        self._secrets = secrets
        self._host = host
        self._states = states

    def adopt(self, router: Router, run: str, lost: kernel.LogLost | None = None) -> str:
        """Send the adoption commands. Returns an empty string when done, else the reason to call again later."""
        (shard,) = router.shards_of("manifests")
        begun = bool(self._store.heads((shard,))[shard].version)
        if begun and lost is None:
            return ""  # `manifests` has decided something, so adoption into this log is complete
        specs, unreadable, endings = self._specs.all()
        # The folder may have been used for a node with another name, whose containers are not ours.
        kept = [spec for spec in specs if spec.node == self._node]
        try:
            found = self._found()
        except Refusal as refusal:
            if kept:
                return f"{len(kept)} pods are kept here: {refusal}"
            found = {}
        secrets = tuple(reversed(self._secrets.all()))  # of several Secrets with one name, the newest wins
        chosen = _chosen(kept, found)
        left = (*unreadable, *_not_adopted(kept, chosen, found))
        if begun and lost is not None:
            return self._fill_in(router, f"{run}/{lost.had}", _Kept(chosen, left, secrets, endings), found)
        if not chosen and not left and not secrets:
            return ""
        # A pod that is already ending is no longer desired: its name is free.
        desired = [one for one in chosen if one.uid not in endings]
        return (
            self._notify_pleg(router, run, found)
            or self._sent(router, [self._command(run, one, found, endings) for one in chosen])
            or self._send(shard, NODE, _adopt_pods(run, desired, left, secrets))
        )

    def _fill_in(self, router: Router, run: str, kept: _Kept, found: _Found) -> str:
        """Send only what is missing from a log that has lost its last entries, and delete the pods of `apply` that have
        ended since.
        """
        states = self._states()
        pods, sources = states["pod"], states["manifests"].get(NODE, manifests_state.State()).pods
        commands = [self._command(run, one, found, kept.endings, end_lost=True) for one in kept.chosen]
        missing = [one for one in commands if one.pod not in pods or knows_less(pods[one.pod], one)]
        desired = [
            one
            for one in kept.chosen
            if one.uid not in kept.endings
            and ((held := sources.get(one.pod)) is None or (held.uid, held.digest) != (one.uid, one.digest))
        ]
        over = [
            key
            for key, held in sorted(sources.items())
            if held.source == APPLY
            and (held.uid in kept.endings or _has_gone(pods.get(key), held.uid, kept.chosen, found))
        ]
        (shard,) = router.shards_of("manifests")
        pending = (
            self._notify_pleg(router, run, found)
            or self._sent(router, missing)
            or self._send(shard, NODE, _adopt_pods(run, desired, kept.left, kept.secrets, end_lost=True))
        )
        if pending or not over:
            return pending
        return self._send(shard, NODE, manifests.DeletePods(request=f"adopt/{run}/over", pods=tuple(over)))

    def _found(self) -> _Found:
        """Return all containers of this node whose labels name their pod. Raises Refusal if the runtime cannot be
        reached.
        """
        found: dict[str, list[tuple[labels.Owner, ContainerState]]] = {}
        for one in self._runtime.list(labels.of_node(self._node)):
            owner = labels.read(one.labels)
            state = self._detailed(one) if owner is not None else None
            if owner is not None and state is not None:
                found.setdefault(owner.uid, []).append((owner, state))
        return found

    def _detailed(self, listed: ContainerState) -> ContainerState | None:
        try:
            return self._runtime.inspect(listed.id)
        except Refusal as refusal:
            if refusal.kind == "unavailable":
                raise
            return listed  # one container that hangs must not block the others

    def _notify_pleg(self, router: Router, run: str, found: _Found) -> str:
        """Send pleg the running containers: otherwise it would miss those that vanish before its first relist."""
        (shard,) = router.shards_of("pleg")
        running = (_running(*one) for each in found.values() for one in each if one[1].state == "running")
        command = pleg.AdoptContainers(request=f"adopt/{run}/running", running=tuple(running))
        return self._send(shard, pleg_actor.NODE, command)

    def _command(
        self,
        run: str,
        spec: KeptSpec,
        found: _Found,
        endings: Mapping[str, pod.Ending],
        *,
        end_lost: bool = False,
    ) -> pod.AdoptPod:
        return pod.AdoptPod(
            request=f"adopt/{run}/{spec.uid}",
            pod=spec.pod,
            uid=spec.uid,
            source=spec.source,
            digest=spec.digest,
            manifest=spec.manifest,
            accepted_at=spec.accepted_at,
            found=tuple(_found_container(*one) for one in found.get(spec.uid, ())),
            host_ip=self._host.address(),
            ending=endings.get(spec.uid),
            end_lost=end_lost,
        )

    def _sent(self, router: Router, commands: Sequence[pod.AdoptPod]) -> str:
        for command in commands:
            if why := self._send(router.shard_for("pod", command.pod), command.pod, command, of=router.count("pod")):
                return why
        return ""

    def _send(self, shard: Shard, key: str, command: Command, *, of: int = 1) -> str:
        """`of`: the kind's number of shards. Return why the command could not be sent; empty if it was."""
        kind = registry.type_of(type(command))
        reply = self._store.send(shard, kind, f"{shard.kind}/{key}", command.request, codec.encode(command), of=of)
        if reply == "moved":
            return f"the number of shards of {shard.kind} has changed"  # the supervisor retries with a new router
        return f"the mailbox of {shard} is full" if reply == "busy" else ""


def _has_gone(state: pod_state.State | None, uid: str, kept: Sequence[KeptSpec], found: _Found) -> bool:
    """Return whether a pod that has a sandbox according to the log has ended since: it has neither a stored spec nor a
    container.
    """
    began = state is not None and state.uid == uid and state.sandbox.phase != "absent"
    return began and uid not in found and all(one.uid != uid for one in kept)


def _adopt_pods(
    run: str,
    chosen: Sequence[KeptSpec],
    left: Sequence[str],
    secrets: Sequence[FoundSecret],
    *,
    end_lost: bool = False,
) -> manifests.AdoptPods:
    return manifests.AdoptPods(
        request=f"adopt/{run}",
        pods=tuple(
            manifests.AdoptedPod(
                pod=one.pod,
                uid=one.uid,
                source=one.source,
                digest=one.digest,
                pull_secrets=secret_names(one.manifest),
            )
            for one in chosen
        ),
        left_alone=tuple(left),
        secrets=tuple(
            manifests.AdoptedSecret(secret=one.secret.key, type=one.secret.type, digest=one.digest, source=one.source)
            for one in secrets
        ),
        end_lost=end_lost,
    )


def _chosen(kept: Sequence[KeptSpec], found: _Found) -> Sequence[KeptSpec]:
    """Choose one spec per pod name: prefer pods that have containers, then the pod accepted last."""
    by_name: dict[str, KeptSpec] = {}
    for spec in sorted(kept, key=lambda one: (one.uid in found, one.accepted_at)):
        by_name[spec.pod] = spec
    return [by_name[name] for name in sorted(by_name)]


def _not_adopted(kept: Sequence[KeptSpec], chosen: Sequence[KeptSpec], found: _Found) -> Iterator[str]:
    """Describe the containers and pods that are not adopted, each with the reason."""
    adopted = {one.uid for one in chosen}
    known = {one.uid: one for one in kept}
    for uid, containers in sorted(found.items()):
        if uid not in adopted:
            why = "another pod has its name" if uid in known else "no spec of its pod is kept"
            yield from (f"container {state.name}: {why}" for _, state in containers)
    for uid in sorted(known.keys() - adopted - found.keys()):
        yield f"pod {known[uid].pod} with uid {uid}: another pod has its name"


def _running(owner: labels.Owner, state: ContainerState) -> pleg.RunningContainer:
    return pleg.RunningContainer(
        pod=owner.pod,
        uid=owner.uid,
        container=owner.container,
        attempt=owner.attempt,
        id=state.id,
        started_at=state.started_at,
    )


def _found_container(owner: labels.Owner, state: ContainerState) -> pod.FoundContainer:
    ended = _ended(state)
    code = state.exit_code if state.detailed else UNKNOWN_EXIT
    return pod.FoundContainer(
        container=owner.container,
        attempt=owner.attempt,
        id=state.id,
        state="exited" if ended else "created" if state.state == "created" else "running",
        spec_hash=owner.spec_hash,
        image_id=state.image_id,
        ip=state.ip,
        exit_code=code if ended else 0,
        reason=ended,
        message=state.error if ended else "",
        started_at=state.started_at,
        finished_at=state.finished_at if ended else 0,
        devices=labels.devices(state.labels),
    )


def _ended(state: ContainerState) -> str:
    """Return the exit reason shown in statuses; empty if the container is or may be running, or if no start of it has
    been attempted.
    """
    match state.state:
        case "exited" | "removed":
            return exit_reason(state) if state.detailed else pod_state.STATUS_UNKNOWN
        case "created" if state.exit_code or state.error:
            return "ContainerCannotRun"
        case _:
            return ""
