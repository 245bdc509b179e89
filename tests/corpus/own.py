"""Pods of the tests' own, for the fields that the corpus lacks: all run together on one node, each test looks at its.

Input: `own(...)` beside each test says what pod it needs. Output: `Ran`, which waits for what a container wrote
from inside, and shows the pod and Docker's view of it. Next: the `test_own_*` files. Whatever a script writes ends
with the line `end`, so that a test knows that it has read everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from docker.errors import NotFound

from chronolet.pod.status.status import plain_status
from chronolet.ports.runtime import labels
from chronolet_schemas import kube_events, pod, prober
from tests.corpus.looks import Look
from tests.corpus.seen import differences
from tests.e2e.node import BUSYBOX, Node

PLACE: Final = "/PLACE"
"""Stands in a pod for a folder of the host that is the pod's alone."""

PATIENCE: Final = 30

STAYS: Final = "trap 'exit 0' TERM\necho end\nsleep 3600 & wait"
"""The last word comes from a container that ends when it is asked to."""

Prepare = Callable[[Path], None]


class Own(msgspec.Struct, frozen=True):
    """One pod, and what its folder of the host must hold before."""

    manifest: Mapping[str, Any]
    prepare: Prepare | None = None


PODS: Final[dict[str, Own]] = {}


def own(
    name: str, *containers: Mapping[str, Any], prepare: Prepare | None = None, metadata: Any = None, **spec: Any
) -> str:
    """A pod that the node shall run; its name."""
    assert name not in PODS, name
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        # Long: whatever a container does at its end, it has the time for it.
        "spec": {"terminationGracePeriodSeconds": 60, "containers": list(containers), **spec},
    }
    PODS[name] = Own(manifest, prepare)
    return name


def joins(name: str, container: dict[str, Any]) -> tuple[str, str]:
    """Another container of that pod: the pod's name and the container's. Where a field is a container's own matter,
    containers that want different things share a pod, for sandboxes take time.
    """
    PODS[name].manifest["spec"]["containers"].append(container)
    return name, container["name"]


def says(name: str, script: str, *, stays: bool = True, **more: Any) -> dict[str, Any]:
    """A container that runs a script, says that this was all, and stays."""
    # One stream: of two, Docker may read the later word first.
    whole = f"exec 2>&1\n{script}\n{STAYS if stays else 'echo end'}"
    return {"name": name, "image": BUSYBOX, "command": ["/bin/sh", "-c", whole], **more}


def on_host(name: str, kind: str = "", path: str = "") -> dict[str, Any]:
    """A volume of the pod's own folder of the host, or of something in it."""
    return {"name": name, "hostPath": {"path": PLACE + path, **({"type": kind} if kind else {})}}


def hooks(node: Node, name: str, namespace: str = "default") -> dict[tuple[str, str], str]:
    """(container, hook) -> how it ended, of one pod, by the node's log."""
    ended = node.journal.events(pod.HookEnded, pod=f"{namespace}/{name}")
    return {(one.container, one.hook): one.outcome for one in ended}


def probes(node: Node, name: str, namespace: str = "default") -> dict[tuple[str, str], Any]:
    """(container, probe) -> its definition as the prober of one pod has it, every field written out."""
    added = node.journal.events(prober.ProbeAdded, pod=f"{namespace}/{name}")
    return {(one.container, one.probe): _whole(one.definition) for one in added}


def _whole(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(type(value))
        return {field.encode_name: _whole(getattr(value, field.name)) for field in fields}
    return [_whole(one) for one in value] if isinstance(value, tuple) else value


class Ran:
    """The node that all of them run on."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def apply_all(self) -> None:
        folder = self.node.root / "own"
        folder.mkdir()
        for name, one in PODS.items():
            self.place(name).mkdir(parents=True)
            if one.prepare is not None:
                one.prepare(self.place(name))
            (folder / f"{name}.json").write_text(json.dumps(self.manifest(name)))
        said = self.node.chronolet("apply", "-f", str(folder))
        assert (said.status, said.out.count(" created\n")) == (0, len(PODS)), said

    def place(self, name: str) -> Path:
        """The pod's folder of the host."""
        return self.node.root / "places" / name

    def manifest(self, name: str) -> dict[str, Any]:
        """As it was applied."""
        written = json.dumps(PODS[name].manifest).replace(PLACE, str(self.place(name)))
        manifest: dict[str, Any] = json.loads(written)
        return manifest

    def pod(self, name: str) -> dict[str, Any]:
        """As `get -o json` shows it now."""
        said = self.node.chronolet("get", "pod", name, "-o", "json")
        assert said.status == 0, said
        shown: dict[str, Any] = json.loads(said.out)
        return shown

    def status(self, name: str) -> dict[str, Any]:
        """The pod's status, by the log read so far."""
        state = self.node.journal.pods.get(f"default/{name}")
        return plain_status(state) if state is not None else {}

    def container(self, name: str, container: str) -> dict[str, Any]:
        """A container's status, by the log read so far; empty while there is none."""
        status = self.status(name)
        every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        every += status.get("ephemeralContainerStatuses", [])
        return next((one for one in every if one["name"] == container), {})

    def wait(self, what: str, condition: Callable[[], Any]) -> Any:
        """Until it holds; its answer."""
        return self.node.journal.wait_for(what, condition, PATIENCE)

    def output(self, name: str, container: str = "app") -> str:
        """All that the container has written, once it has written `end`."""

        def finished() -> str:
            text = self.written(name, container)
            return text if text.endswith("end\n") else ""

        text: str = self.wait(f"what {container} of {name} writes; now {self.status(name)}", finished)
        return text.removesuffix("end\n")

    def written(self, name: str, container: str = "app") -> str:
        """What the container has written so far, with lines that end as they do everywhere."""
        found = self.inspected(name).get(container)
        text: bytes = self.node.docker.logs(found["Id"]) if found else b""
        return text.decode().replace("\r", "")

    def inspected(self, name: str) -> dict[str, Any]:
        """Docker's inspect of each of the pod's containers, of the newest attempt."""
        chosen = {"label": [f"{labels.NODE}={self.node.name}", f"{labels.POD_NAME}={name}"]}
        found: dict[str, Any] = {}
        for one in sorted(self.node.docker.containers(all=True, filters=chosen), key=lambda one: one["Created"]):
            with suppress(NotFound):  # removed since it was listed
                found[one["Labels"][labels.CONTAINER_NAME]] = self.node.docker.inspect_container(one["Id"])
        return found

    def waits(self, reason: str, name: str, container: str = "app") -> str:
        """Until the container waits for that reason; the message."""

        def waiting() -> Any:
            part = self.container(name, container).get("state", {}).get("waiting", {})
            return part if part.get("reason") == reason else None

        found: dict[str, str] = self.wait(f"{container} of {name} to wait with {reason}", waiting)
        return found.get("message", "")

    def ended(self, name: str, container: str = "app") -> dict[str, Any]:
        """How the container ended, once it has."""
        found: dict[str, Any] = self.wait(
            f"the end of {container} of {name}; now {self.status(name)}",
            lambda: self.container(name, container).get("state", {}).get("terminated"),
        )
        return found

    def differences(self, name: str) -> list[str]:
        """What is honoured and shows nowhere in Docker."""
        hooked, probed = hooks(self.node, name), probes(self.node, name)
        return differences(Look(self.manifest(name), self.pod(name), self.inspected(name), hooked, probed))

    def told(self, reason: str, name: str, container: str = "") -> str:
        """The message of the first KubeEvent of that reason about the pod, or about one of its containers."""
        place = {"field_path": f"spec.containers{{{container}}}"} if container else {}
        event = self.node.journal.wait_for_event(
            kube_events.Recorded, name=name, reason=reason, seconds=PATIENCE, **place
        )
        return event.message
