"""The three pods of the crash matrix, and how each changes in its life.

Input: a host port, a folder of the host, who listens for requests. Output: manifests. Next: `life`.

`web` is the one of `examples/web.yaml` in short: one container writes a page, the other serves it from a shared
emptyDir on a host port. `whole` has all that a life may have: an init container that writes the page, a sidecar, and
hooks of every kind around their starts and stops. An exec hook leaves a line that names the container's very run.
`probed` is `web` with a liveness probe of the server, which fails while the file `well` is not in the folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from chronolet.pod.planning.ahead import LONGEST_GRACE_SECONDS

Kind = Literal["web", "whole", "probed"]

GRACE_SECONDS = 120
"""Nothing that a pod does at its end takes so long: a kill at the end of it would be another story."""

WELL = "well"

_SHELL = {"image": "chronolet/busybox:1", "imagePullPolicy": "IfNotPresent"}
_STAYS = "trap 'exit 0' TERM; sleep 3600 & wait"
_SERVES = "trap 'exit 0' TERM; httpd -f -p 8080 -h /www & wait"
_PAGES = {"name": "pages", "mountPath": "/pages"}
_WWW = {"name": "pages", "mountPath": "/www", "readOnly": True}
_HOOKS = {"name": "hooks", "mountPath": "/hooks"}


class Place(msgspec.Struct, frozen=True):
    """What differs from node to node: the host port, the folder for lines of hooks, who is asked by HTTP hooks."""

    port: int
    hooks: str
    listener: int
    node: str


def manifest(kind: Kind, place: Place, changes: int = 0) -> dict[str, Any]:
    """The pod after so many changes: the first is of a container, the second of the sandbox."""
    specs = {"web": lambda: _web(place), "whole": lambda: _whole(place, changes), "probed": lambda: _probed(place)}
    spec = specs[kind]()
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


def _web(place: Place) -> dict[str, Any]:
    writes = f"trap 'exit 0' TERM; echo page > /pages/index.html; {_STAYS}"
    return {
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "volumes": [{"name": "pages", "emptyDir": {}}],
        "containers": [_container("writer", writes, [_PAGES]), _server(place)],
    }


def _probed(place: Place) -> dict[str, Any]:
    spec = _web(place)
    server = spec["containers"][1]
    server["volumeMounts"] = [_WWW, _HOOKS]
    looks = {"exec": {"command": ["test", "-e", f"/hooks/{WELL}"]}}
    server["livenessProbe"] = {**looks, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": GRACE_SECONDS}
    server["livenessProbe"]["terminationGracePeriodSeconds"] = LONGEST_GRACE_SECONDS
    spec["volumes"].append({"name": "hooks", "hostPath": {"path": place.hooks}})
    return spec


def _server(place: Place, **more: Any) -> dict[str, Any]:
    return _container("server", _SERVES, [_WWW], ports=[{"containerPort": 8080, "hostPort": place.port}], **more)


def _whole(place: Place, changes: int) -> dict[str, Any]:
    server = _server(place, lifecycle={"postStart": _line("server PostStart"), "preStop": _line("server PreStop")})
    server["volumeMounts"] = [_WWW, _HOOKS]
    side = _container("side", _STAYS, [_HOOKS], restartPolicy="Always")
    side["lifecycle"] = {"postStart": _line("side PostStart"), "preStop": _request(place, "side/PreStop")}
    writer = _container("writer", _STAYS, [], env=[{"name": "CHANGES", "value": str(min(changes, 1))}])
    writer["lifecycle"] = {"postStart": _request(place, "writer/PostStart"), "preStop": {"sleep": {"seconds": 1}}}
    return {
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "hostname": "other" if changes > 1 else "first",
        "volumes": [{"name": "pages", "emptyDir": {}}, {"name": "hooks", "hostPath": {"path": place.hooks}}],
        "initContainers": [_container("prepare", "echo page > /pages/index.html", [_PAGES]), side],
        "containers": [server, writer],
    }


def _container(name: str, script: str, mounts: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"name": name, **_SHELL, "command": ["/bin/sh", "-c", script], "volumeMounts": list(mounts), **more}


def _line(what: str) -> dict[str, Any]:
    """A hook that writes down what it is and when the container's first process began, which no other run shares."""
    return {"exec": {"command": ["/bin/sh", "-c", f"echo {what} $(cut -d' ' -f22 /proc/1/stat) >> /hooks/lines"]}}


def _request(place: Place, path: str) -> dict[str, Any]:
    return {"httpGet": {"host": "127.0.0.1", "port": place.listener, "path": f"/{place.node}/{path}"}}
