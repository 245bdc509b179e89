"""Each honoured field occurs in some pod that these tests run on a real node."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.expected import EXPECTED, Accepted
from tests.corpus.extra.pods import PODS
from tests.corpus.fields import fields
from tests.corpus.manifests import content, paths

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
"""Metadata fields that an API server writes; they have no effect here."""

ELSEWHERE = {
    # All fields of probes are tested in tests/e2e/probes and tests/integration/probes.
    "containers.livenessProbe",
    "containers.readinessProbe",
    "containers.startupProbe",
    # These need a device plugin: tests/e2e/devices/test_plugins.py.
    "containers.resources.limits.*/*",
    "containers.resources.requests.*/*",
    # These need a machine with huge pages: tests/setup/cgroup2_checks.py.
    *(f"{whose}resources.{side}.hugepages-*" for whose in ("", "containers.") for side in ("limits", "requests")),
    # This is added to a running pod in test_lives.
    "containers.targetContainerName",
    # The worker is the same as for preStop; during the start, nothing may be answering yet.
    "containers.lifecycle.postStart.httpGet",
    "containers.lifecycle.preStop.httpGet.host",
    # This needs a kernel with AppArmor: here only the refusal is tested.
    "containers.securityContext.appArmorProfile.localhostProfile",
    "securityContext.appArmorProfile",
}
"""Prefixes of fields that these pods omit, because the fields are tested elsewhere or for the stated reason."""


def test_every_honoured_field_is_in_a_pod_that_runs() -> None:
    used = {_one_type(path) for manifest in _manifests() for path in _paths(manifest, "")}
    honoured = {_one_type(one.path) for one in fields() if one.verdict.severity is None}
    left = {path for path in honoured if path.removesuffix(".*") not in used and not _is_elsewhere(path)}
    assert left == set()


def _manifests() -> Iterator[Any]:
    for module in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"tests.corpus.extra.{module.stem}")
    yield from (one.manifest for one in PODS.values())
    for file, expected in EXPECTED.items():
        if isinstance(expected, Accepted) and not expected.blocks:
            yield content(paths()[file].read_text())


def _paths(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of all values in a manifest, without indices."""
    yield path
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _paths(held, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for held in value:
            yield from _paths(held, path)


def _one_type(path: str) -> str:
    """Return the path with the same name for all container types."""
    plain = path.replace("[]", "")
    return plain.replace("spec.initContainers", "spec.containers").replace(
        "spec.ephemeralContainers", "spec.containers"
    )


def _is_elsewhere(path: str) -> bool:
    if path.startswith("metadata."):
        return path.split(".")[1] in BY_SERVERS
    return f"{path}.".startswith(tuple(f"spec.{place}." for place in ELSEWHERE))
