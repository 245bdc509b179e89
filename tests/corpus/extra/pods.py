"""Extra pods for the fields that the corpus lacks. All of them run together on one node; each test inspects its own
pod.

Input: `add_pod(...)`, which a test module calls next to each test to declare the pod that the test needs. Output:
`AppliedPods`, which waits for the output of containers, and shows a pod and Docker's view of it. Next: the `test_*`
files of this folder. The output of each script ends with the line `end`, so that a test knows that it has read all of
it.
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
from tests.corpus.comparison import differences
from tests.corpus.docker_checks import PodView
from tests.e2e.node import BUSYBOX, Node

PLACE: Final = "/PLACE"
"""Placeholder in a manifest for the pod's private folder on the host."""

PATIENCE: Final = 30

STAYS: Final = "trap 'exit 0' TERM\necho end\nsleep 3600 & wait"
"""The last lines of a script: they print the line `end` and keep the container running until SIGTERM."""

Prepare = Callable[[Path], None]


class ExtraPod(msgspec.Struct, frozen=True):
    """A pod, and a function that fills its folder on the host before the pod is applied."""

    manifest: Mapping[str, Any]
    prepare: Prepare | None = None


PODS: Final[dict[str, ExtraPod]] = {}


def add_pod(
    name: str, *containers: Mapping[str, Any], prepare: Prepare | None = None, metadata: Any = None, **spec: Any
) -> str:
    """Declare a pod that the node runs; return its name."""
    assert name not in PODS, name
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        # Long enough for whatever a container does when it is stopped.
        "spec": {"terminationGracePeriodSeconds": 60, "containers": list(containers), **spec},
    }
    PODS[name] = ExtraPod(manifest, prepare)
    return name


def add_container(name: str, container: dict[str, Any]) -> tuple[str, str]:
    """Add a container to a declared pod; return the names of pod and container. Tests of container fields share a pod,
    because each sandbox takes time.
    """
    PODS[name].manifest["spec"]["containers"].append(container)
    return name, container["name"]


def script(name: str, lines: str, *, stays: bool = True, **more: Any) -> dict[str, Any]:
    """Return a container that runs `lines`, prints `end`, and keeps running if `stays` is true."""
    # Standard error joins standard output, because Docker may deliver two streams out of order.
    whole = f"exec 2>&1\n{lines}\n{STAYS if stays else 'echo end'}"
    return {"name": name, "image": BUSYBOX, "command": ["/bin/sh", "-c", whole], **more}


def host_volume(name: str, kind: str = "", path: str = "") -> dict[str, Any]:
    """Return a hostPath volume for the pod's folder on the host, or for a path in it."""
    return {"name": name, "hostPath": {"path": PLACE + path, **({"type": kind} if kind else {})}}


def hooks(node: Node, name: str, namespace: str = "default") -> dict[tuple[str, str], str]:
    """Return the outcome of each hook of one pod from the node's log, by (container, hook)."""
    ended = node.journal.events(pod.HookEnded, pod=f"{namespace}/{name}")
    return {(one.container, one.hook): one.outcome for one in ended}


def probes(node: Node, name: str, namespace: str = "default") -> dict[tuple[str, str], Any]:
    """Return the prober's definition of each probe of one pod, with all fields, by (container, probe)."""
    added = node.journal.events(prober.ProbeAdded, pod=f"{namespace}/{name}")
    return {(one.container, one.probe): _whole(one.definition) for one in added}


def _whole(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(type(value))
        return {field.encode_name: _whole(getattr(value, field.name)) for field in fields}
    return [_whole(one) for one in value] if isinstance(value, tuple) else value


class AppliedPods:
    """The node that runs all declared pods."""

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
        result = self.node.chronolet("apply", "-f", str(folder))
        assert (result.status, result.out.count(" created\n")) == (0, len(PODS)), result

    def place(self, name: str) -> Path:
        """Return the pod's folder on the host."""
        return self.node.root / "places" / name

    def manifest(self, name: str) -> dict[str, Any]:
        """Return the manifest as it was applied."""
        written = json.dumps(PODS[name].manifest).replace(PLACE, str(self.place(name)))
        manifest: dict[str, Any] = json.loads(written)
        return manifest

    def pod(self, name: str) -> dict[str, Any]:
        """Return the pod as `get -o json` shows it now."""
        result = self.node.chronolet("get", "pod", name, "-o", "json")
        assert result.status == 0, result
        shown: dict[str, Any] = json.loads(result.out)
        return shown

    def status(self, name: str) -> dict[str, Any]:
        """Return the pod's status, folded from the log read so far."""
        state = self.node.journal.pods.get(f"default/{name}")
        return plain_status(state) if state is not None else {}

    def container(self, name: str, container: str) -> dict[str, Any]:
        """Return a container's status, folded from the log read so far; empty if there is none yet."""
        status = self.status(name)
        every = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        every += status.get("ephemeralContainerStatuses", [])
        return next((one for one in every if one["name"] == container), {})

    def wait(self, what: str, condition: Callable[[], Any]) -> Any:
        """Wait until `condition` returns a true value; return that value."""
        return self.node.journal.wait_for(what, condition, PATIENCE)

    def output(self, name: str, container: str = "app") -> str:
        """Wait until the container has written `end`; return its whole output."""

        def finished() -> str:
            text = self.written(name, container)
            return text if text.endswith("end\n") else ""

        text: str = self.wait(f"what {container} of {name} writes; now {self.status(name)}", finished)
        return text.removesuffix("end\n")

    def written(self, name: str, container: str = "app") -> str:
        """Return the container's output so far, without carriage returns."""
        found = self.inspected(name).get(container)
        text: bytes = self.node.docker.logs(found["Id"]) if found else b""
        return text.decode().replace("\r", "")

    def inspected(self, name: str) -> dict[str, Any]:
        """Return Docker's inspect of the newest attempt of each of the pod's containers."""
        chosen = {"label": [f"{labels.NODE}={self.node.name}", f"{labels.POD_NAME}={name}"]}
        found: dict[str, Any] = {}
        for one in sorted(self.node.docker.containers(all=True, filters=chosen), key=lambda one: one["Created"]):
            with suppress(NotFound):  # removed since it was listed
                found[one["Labels"][labels.CONTAINER_NAME]] = self.node.docker.inspect_container(one["Id"])
        return found

    def waits(self, reason: str, name: str, container: str = "app") -> str:
        """Wait until the container is waiting with `reason`; return the message."""

        def waiting() -> Any:
            part = self.container(name, container).get("state", {}).get("waiting", {})
            return part if part.get("reason") == reason else None

        found: dict[str, str] = self.wait(f"{container} of {name} to wait with {reason}", waiting)
        return found.get("message", "")

    def ended(self, name: str, container: str = "app") -> dict[str, Any]:
        """Wait until the container has ended; return its terminated state."""
        found: dict[str, Any] = self.wait(
            f"the end of {container} of {name}; now {self.status(name)}",
            lambda: self.container(name, container).get("state", {}).get("terminated"),
        )
        return found

    def differences(self, name: str) -> list[str]:
        """Return one line for each honoured field that does not have its effect in Docker."""
        hooked, probed = hooks(self.node, name), probes(self.node, name)
        return differences(PodView(self.manifest(name), self.pod(name), self.inspected(name), hooked, probed))

    def event_message(self, reason: str, name: str, container: str = "") -> str:
        """Wait for a KubeEvent with `reason` about the pod or any of its containers, or, if `container` is given, about
        that app container; return the message of the first one.
        """
        place = {"field_path": f"spec.containers{{{container}}}"} if container else {}
        event = self.node.journal.wait_for_event(
            kube_events.Recorded, name=name, reason=reason, seconds=PATIENCE, **place
        )
        return event.message
