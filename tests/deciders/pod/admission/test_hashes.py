"""Which changes of a Pod's spec need a new sandbox."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chronolet.pod.admission.hashes import sandbox_hash
from chronolet_schemas import podspec

PORT = {"containerPort": 80, "hostPort": 8080}


def hash_of(**spec: Any) -> str:
    containers = spec.pop("containers", [{"name": "app", "image": "web:1"}])
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": containers, **spec}}
    return sandbox_hash(msgspec.convert(raw, podspec.Pod))


@pytest.mark.parametrize(
    "changed",
    [
        {"containers": [{"name": "app", "image": "web:1", "ports": [PORT]}]},
        {"initContainers": [{"name": "side", "image": "web:1", "restartPolicy": "Always", "ports": [PORT]}]},
        {"hostNetwork": True},
    ],
    ids=["port", "port of a sidecar", "network"],
)
def test_what_the_sandbox_is_made_of_changes_its_hash(changed: dict[str, Any]) -> None:
    assert hash_of(**changed) != hash_of()


@pytest.mark.parametrize(
    "changed",
    [
        {"containers": [{"name": "app", "image": "web:2"}]},
        {"containers": [{"name": "app", "image": "web:1", "ports": [{"containerPort": 80}]}]},
        {"initContainers": [{"name": "prepare", "image": "web:1", "ports": [PORT]}]},
        {"restartPolicy": "Never"},
    ],
    ids=["image", "port that is not published", "port of an init container", "restart policy"],
)
def test_other_changes_do_not(changed: dict[str, Any]) -> None:
    assert hash_of(**changed) == hash_of()
