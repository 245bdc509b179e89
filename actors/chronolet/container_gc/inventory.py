"""What there is to be collected from, by reading calls only.

Comes in: the runtime, the log folders. Goes out: `signals.Looked`. Next: `decider`, or `gc plan`, which asks the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from chronolet.container_gc.signals import Folder, Link, Looked, Seen, Stage
from chronolet.ports.pods.pod_logs import LogFolder, LogLink, PodLogs, PodLogsRefusal
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal, Runtime
from chronolet_schemas.container_gc import Policy
from chronolet_schemas.pleg import SANDBOX


class Inventory(Struct, frozen=True):
    """Where to look, and the settings that hold."""

    runtime: Runtime
    logs: PodLogs
    node: str
    policy: Policy
    run: Callable[[], str] = lambda: ""
    """The log's, by which its containers are labelled."""
    parallel: int = 1
    """How many removals may be made at a time."""

    def look(self, subject: str = "", intent: str = "", fence: Callable[[str], None] = lambda _: None) -> Looked:
        """One look; what cannot be listed is said by its stage. `fence` is called before each call to the runtime."""
        errors: dict[Stage, str] = {}
        containers: Sequence[ContainerState] = ()
        folders: Sequence[LogFolder] = ()
        links: Sequence[LogLink] = ()
        try:
            # Before the containers: whatever has a link is older than it, so it is listed if it is still there.
            folders, links = self.logs.folders(), self.logs.links()
        except PodLogsRefusal as refusal:
            errors["pod_log_directories"] = str(refusal)
        try:
            fence("docker.list")
            containers = [self._settled(one, fence) for one in self.runtime.list(labels.of_node(self.node))]
        except Refusal as refusal:
            errors |= {"containers": str(refusal), "sandboxes": str(refusal)}
        by_id = {one.id: one.state for one in containers}
        run = self.run()
        seen = [_seen(one, run) for one in containers]
        return Looked(
            subject=subject,
            intent=intent,
            node=self.node,
            policy=self.policy,
            log_folder=self.logs.path,
            log_run=run,
            parallel=self.parallel,
            containers=tuple(one for one in seen if one.container != SANDBOX),
            sandboxes=tuple(one for one in seen if one.container == SANDBOX),
            log_folders=tuple(Folder(name=one.name, changed_at=one.changed_at) for one in folders),
            log_links=tuple(_links(links, by_id)) if "containers" not in errors else (),
            errors=errors,
        )

    def _settled(self, one: ContainerState, fence: Callable[[str], None]) -> ContainerState:
        """A container that is frozen runs, though no listing says so."""
        if one.state != "unknown":
            return one
        fence("docker.inspect")
        found = self.runtime.inspect(one.id)
        if found is None or not found.pid:
            return one
        return ContainerState(
            id=one.id, name=one.name, labels=one.labels, state="running", created_at=one.created_at, detailed=False
        )


def _seen(one: ContainerState, run: str) -> Seen:
    owner = labels.read(one.labels)
    return Seen(
        id=one.id,
        name=one.name,
        pod=owner.pod if owner else "",
        uid=owner.uid if owner else "",
        container=owner.container if owner else "",
        attempt=owner.attempt if owner else 0,
        created_at=one.created_at,
        state="unknown" if one.state == "removed" else one.state,
        sandbox_id=one.sandbox_id,
        of_this_log=owner is None or owner.run == run,
    )


def _links(links: Sequence[LogLink], states: Mapping[str, str]) -> Iterator[Link]:
    """A container that is not there is dead, one that was made and not started is not."""
    for one in links:
        dead = states.get(one.container_id, "exited") == "exited"
        yield Link(name=one.name, target_exists=one.target_exists, container_dead=dead)
