"""The pods of a soak: the kinds take turns, so that any number of pods contains about the same number of each kind.

Input: a number. Output: manifests, and the expected behaviour of each. Next: `life`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.e2e.node import pod, shell

DEVICE = "soak.example/device"
MOST_DEVICES = 8
_SERVES = (
    "trap 'exit 0' TERM; mkdir -p /tmp/www; touch /tmp/www/ok; httpd -f -p 8080 -h /tmp/www & sleep 1000000 & wait"
)
_STAYS = "trap 'exit 0' TERM; touch /tmp/ok; sleep 1000000 & wait"
_EACH_SECOND = {"periodSeconds": 1, "failureThreshold": 3}
BREAKABLE = ("http", "exec")
"""Kinds whose containers fail their probe once their file `ok` is removed; a restart creates it again."""
LOOPING = "crashes"
HOW_TO_BREAK = {"http": ["rm", "/tmp/www/ok"], "exec": ["rm", "/tmp/ok"]}

_KINDS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "plain": pod,
    "tcp": lambda name: pod(name, shell("app", _SERVES, livenessProbe={"tcpSocket": {"port": 8080}, **_EACH_SECOND})),
    "http": lambda name: pod(
        name, shell("app", _SERVES, livenessProbe={"httpGet": {"path": "/ok", "port": 8080}, **_EACH_SECOND})
    ),
    "exec": lambda name: pod(
        name,
        shell("app", _STAYS, livenessProbe={"exec": {"command": ["cat", "/tmp/ok"]}, "periodSeconds": 10}),
    ),
    "ready": lambda name: pod(
        name, shell("app", _SERVES, readinessProbe={"httpGet": {"path": "/ok", "port": 8080}, "periodSeconds": 2})
    ),
    "sidecar": lambda name: pod(
        name,
        initContainers=[shell("init", "exit 0"), shell("side", _STAYS, restartPolicy="Always")],
    ),
    "done": lambda name: pod(name, shell("app", "exit 0"), restartPolicy="Never"),
    "failed": lambda name: pod(name, shell("app", "exit 7"), restartPolicy="Never"),
    LOOPING: lambda name: pod(name, shell("app", "sleep 1; exit 3")),
    "limited": lambda name: pod(name, shell("app", _STAYS, resources={"limits": {"cpu": "100m", "memory": "32Mi"}})),
    "volume": lambda name: pod(
        name,
        shell("app", _STAYS, volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        volumes=[{"name": "v", "emptyDir": {}}],
    ),
    "device": lambda name: pod(name, shell("app", _STAYS, resources={"limits": {DEVICE: 1}})),
}


def kinds(count: int) -> dict[str, str]:
    """Return the kind of each pod by its name. At most MOST_DEVICES pods request a device; further device pods
    become plain.
    """
    names = list(_KINDS)
    found: dict[str, str] = {}
    for number in range(count):
        kind = names[number % len(names)]
        if kind == "device" and list(found.values()).count("device") == MOST_DEVICES:
            kind = "plain"
        found[f"{kind}-{number}"] = kind
    return found


def manifest(name: str, kind: str) -> dict[str, Any]:
    """Return a pod's manifest."""
    return _KINDS[kind](name)


def stays(kind: str) -> bool:
    """Return whether the pod's containers run permanently."""
    return kind not in ("done", "failed", LOOPING)
