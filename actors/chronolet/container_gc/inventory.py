"""Scan the node: list everything that can be collected, with read-only calls.

Input: the runtime, the log folders. Output: `signals.Looked`. Next: `decider`, or `gc plan`, which makes the same scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from chronolet.container_gc.signals import Folder, Link, Looked, RuntimeObject, Stage
from chronolet.ports.pods.pod_logs import LogFolder, LogLink, PodLogs, PodLogsRefusal
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal, Runtime
from chronolet_schemas.container_gc import Policy
from chronolet_schemas.pleg import SANDBOX


class Inventory(Struct, frozen=True):
    """Lists everything on the node that can be collected. A scan also reports the settings in force."""

    runtime: Runtime
    logs: PodLogs
    node: str
    policy: Policy
    run: Callable[[], str] = lambda: ""
    """Returns the id of the log's current run, with which containers are labelled."""
    parallel: int = 1
    """Limit on the number of concurrent removals."""

    def scan(self, subject: str = "", intent: str = "", fence: Callable[[str], None] = lambda _: None) -> Looked:
        """List everything once. The result's `errors` name each stage whose objects could not be listed. `fence` is
        called before each runtime call.
        """
        errors: dict[Stage, str] = {}
        containers: Sequence[ContainerState] = ()
        folders: Sequence[LogFolder] = ()
        links: Sequence[LogLink] = ()
        try:
            # List links first: a container is older than its link, so it is in the later listing if it still exists.
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
        found = [_runtime_object(one, run) for one in containers]
        return Looked(
            subject=subject,
            intent=intent,
            node=self.node,
            policy=self.policy,
            log_folder=self.logs.path,
            log_run=run,
            parallel=self.parallel,
            containers=tuple(one for one in found if one.container != SANDBOX),
            sandboxes=tuple(one for one in found if one.container == SANDBOX),
            log_folders=tuple(Folder(name=one.name, changed_at=one.changed_at) for one in folders),
            log_links=tuple(_links(links, by_id)) if "containers" not in errors else (),
            errors=errors,
        )

    def _settled(self, one: ContainerState, fence: Callable[[str], None]) -> ContainerState:
        """Return the container. If its state is unknown but it has a process, as a paused container does, its state is
        returned as running.
        """
        if one.state != "unknown":
            return one
        fence("docker.inspect")
        found = self.runtime.inspect(one.id)
        if found is None or not found.pid:
            return one
        return replace(one, state="running")


def _runtime_object(one: ContainerState, run: str) -> RuntimeObject:
    owner = labels.read(one.labels)
    return RuntimeObject(
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
    """Convert the links. A missing container counts as dead; one that was created but never started does not."""
    for one in links:
        dead = states.get(one.container_id, "exited") == "exited"
        yield Link(name=one.name, target_exists=one.target_exists, container_dead=dead)
