"""What is said to be honoured is in some pod that a real node runs in these tests."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.expected import EXPECTED, Taken
from tests.corpus.fields import fields
from tests.corpus.manifests import content, paths
from tests.corpus.own import PODS

pytestmark = pytest.mark.corpus

BY_SERVERS = {
    "generateName",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "managedFields",
}
"""Fields of metadata that an API server writes: nothing here acts on them."""

ELSEWHERE = {
    # Whatever a probe can say: tests/e2e/probes and tests/integration/probes.
    "containers.livenessProbe",
    "containers.readinessProbe",
    "containers.startupProbe",
    # Asked of a device plugin: tests/e2e/devices/test_plugins.py.
    "containers.resources.limits.*/*",
    "containers.resources.requests.*/*",
    # A machine that has some: tests/setup/cgroup2_checks.py.
    *(f"{whose}resources.{side}.hugepages-*" for whose in ("", "containers.") for side in ("limits", "requests")),
    # Put into a pod that runs already: test_own_lives.
    "containers.targetContainerName",
    # The worker is the one of preStop; before its start is over nothing here answers for sure.
    "containers.lifecycle.postStart.httpGet",
    "containers.lifecycle.preStop.httpGet.host",
    # Needs a kernel with AppArmor: the words of refusal are asked for.
    "containers.securityContext.appArmorProfile.localhostProfile",
    "securityContext.appArmorProfile",
}
"""What is below these is looked at elsewhere, mostly in tests/integration/effects."""


def test_every_honoured_field_is_in_a_pod_that_runs() -> None:
    used = {_one_sort(path) for manifest in _manifests() for path in _paths(manifest, "")}
    honoured = {_one_sort(one.path) for one in fields() if one.verdict.severity is None}
    left = {path for path in honoured if path.removesuffix(".*") not in used and not _is_elsewhere(path)}
    assert left == set()


def _manifests() -> Iterator[Any]:
    for module in Path(__file__).parent.glob("test_own_*.py"):
        importlib.import_module(f"tests.corpus.{module.stem}")
    yield from (one.manifest for one in PODS.values())
    for file, expected in EXPECTED.items():
        if isinstance(expected, Taken) and not expected.blocks:
            yield content(paths()[file].read_text())


def _paths(value: Any, path: str) -> Iterator[str]:
    """Of everything in a manifest, without indices."""
    yield path
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _paths(held, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for held in value:
            yield from _paths(held, path)


def _one_sort(path: str) -> str:
    """All sorts of containers as one."""
    plain = path.replace("[]", "")
    return plain.replace("spec.initContainers", "spec.containers").replace(
        "spec.ephemeralContainers", "spec.containers"
    )


def _is_elsewhere(path: str) -> bool:
    if path.startswith("metadata."):
        return path.split(".")[1] in BY_SERVERS
    return f"{path}.".startswith(tuple(f"spec.{place}." for place in ELSEWHERE))
