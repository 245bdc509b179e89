"""The three pods of the crash matrix, and their changes.

Input: a host port, a folder on the host, the server for HTTP hooks. Output: manifests. Next: `pod_run`.

`web` is a short form of `examples/web.yaml`: one container writes a page, the other serves it from a shared emptyDir on
a host port. `full` has an init container that writes the page, a sidecar, and hooks of every kind after starts and
before stops. An exec hook writes a line that identifies the container's run. `probed` is `web` with a liveness probe of
the server, which fails while the file `well` is missing from the folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from chronolet.pod.planning.ahead import LONGEST_GRACE_SECONDS

Kind = Literal["web", "full", "probed"]

GRACE_SECONDS = 120
"""Grace period in seconds: longer than anything that a pod does at its end, so that it never expires and no container
is killed.
"""

WELL = "well"

_SHELL = {"image": "chronolet/busybox:1", "imagePullPolicy": "IfNotPresent"}
_STAYS = "trap 'exit 0' TERM; sleep 3600 & wait"
_SERVES = "trap 'exit 0' TERM; httpd -f -p 8080 -h /www & wait"
_PAGES = {"name": "pages", "mountPath": "/pages"}
_WWW = {"name": "pages", "mountPath": "/www", "readOnly": True}
_HOOKS = {"name": "hooks", "mountPath": "/hooks"}


class Setup(msgspec.Struct, frozen=True):
    """Values that differ from node to node: the host port, the folder for the lines of hooks, the port of the hook
    server, and the node's name.
    """

    port: int
    hooks: str
    hook_server: int
    node: str


def manifest(kind: Kind, setup: Setup, changes: int = 0) -> dict[str, Any]:
    """Return the pod after `changes` changes: the first one changes a container, the second one the sandbox."""
    specs = {"web": lambda: _web(setup), "full": lambda: _full(setup, changes), "probed": lambda: _probed(setup)}
    spec = specs[kind]()
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


def _web(setup: Setup) -> dict[str, Any]:
    writes = f"trap 'exit 0' TERM; echo page > /pages/index.html; {_STAYS}"
    return {
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "volumes": [{"name": "pages", "emptyDir": {}}],
        "containers": [_container("writer", writes, [_PAGES]), _server(setup)],
    }


def _probed(setup: Setup) -> dict[str, Any]:
    spec = _web(setup)
    server = spec["containers"][1]
    server["volumeMounts"] = [_WWW, _HOOKS]
    check = {"exec": {"command": ["test", "-e", f"/hooks/{WELL}"]}}
    server["livenessProbe"] = {**check, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": GRACE_SECONDS}
    server["livenessProbe"]["terminationGracePeriodSeconds"] = LONGEST_GRACE_SECONDS
    spec["volumes"].append({"name": "hooks", "hostPath": {"path": setup.hooks}})
    return spec


def _server(setup: Setup, **more: Any) -> dict[str, Any]:
    return _container("server", _SERVES, [_WWW], ports=[{"containerPort": 8080, "hostPort": setup.port}], **more)


def _full(setup: Setup, changes: int) -> dict[str, Any]:
    server = _server(setup, lifecycle={"postStart": _line("server PostStart"), "preStop": _line("server PreStop")})
    server["volumeMounts"] = [_WWW, _HOOKS]
    side = _container("side", _STAYS, [_HOOKS], restartPolicy="Always")
    side["lifecycle"] = {"postStart": _line("side PostStart"), "preStop": _request(setup, "side/PreStop")}
    writer = _container("writer", _STAYS, [], env=[{"name": "CHANGES", "value": str(min(changes, 1))}])
    writer["lifecycle"] = {"postStart": _request(setup, "writer/PostStart"), "preStop": {"sleep": {"seconds": 1}}}
    return {
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "hostname": "other" if changes > 1 else "first",
        "volumes": [{"name": "pages", "emptyDir": {}}, {"name": "hooks", "hostPath": {"path": setup.hooks}}],
        "initContainers": [_container("prepare", "echo page > /pages/index.html", [_PAGES]), side],
        "containers": [server, writer],
    }


def _container(name: str, script: str, mounts: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"name": name, **_SHELL, "command": ["/bin/sh", "-c", script], "volumeMounts": list(mounts), **more}


def _line(what: str) -> dict[str, Any]:
    """Return a hook that writes its name and the start time of the container's process 1, which identifies the run."""
    return {"exec": {"command": ["/bin/sh", "-c", f"echo {what} $(cut -d' ' -f22 /proc/1/stat) >> /hooks/lines"]}}


def _request(setup: Setup, path: str) -> dict[str, Any]:
    return {"httpGet": {"host": "127.0.0.1", "port": setup.hook_server, "path": f"/{setup.node}/{path}"}}
