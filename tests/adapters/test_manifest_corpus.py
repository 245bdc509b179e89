"""Pod manifests that people really wrote, from fifteen public repositories: each is a pod, or refused for a reason.

They lie beside the repository. A machine without them cannot say that reading manifests works.
"""

from pathlib import Path

import pytest

from chronolet.adapters.manifest_files import Parsed, read_documents
from chronolet_schemas.podspec import BLOCKING, from_plain, to_plain

MANIFESTS = Path(__file__).parents[3] / "shared" / "manifests"
FILES = sorted(path for path in MANIFESTS.rglob("*") if path.suffix in {".yaml", ".yml"})

REFUSED = {
    "play_kube_podWithoutAName.yaml": ["metadata.name", "spec.containers[0].name"],
    "play_kube_publishPortsEchoWithHostPortUDP.yaml": ["spec.containers[0].ports[0].protocol"],
    "play_kube_publishPortsPodWithoutPorts.yaml": ["spec.containers[0].imagePullPolicy"],
    "play_kube_simpleWithoutPodPrefixYaml.yaml": ["spec.containers[0].name"],
}
"""Kubernetes would refuse these four: no name, capitals in a container's name, `udp`, a pull policy of another tool."""

RUNS_AS_ASKED = {
    "admin_dns_busybox.yaml",
    "admin_resource_cpu-defaults-pod.yaml",
    "admin_resource_memory-defaults-pod.yaml",
    "pods_inject_envars.yaml",
    "pods_qos_qos-pod-3.yaml",
    "pods_qos_qos-pod.yaml",
    "pods_resource_cpu-request-limit-2.yaml",
    "pods_simple-pod.yaml",
}
"""Nothing is to be said about these at all."""


def read(path: Path) -> Parsed:
    return read_documents(path.read_bytes(), path.name)


def test_the_manifests_are_here() -> None:
    if len(FILES) < 50:
        pytest.fail(f"{MANIFESTS} holds {len(FILES)} manifests, expected the 52 real ones that this suite reads")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_real_manifest_is_a_pod_or_refused_by_path(path: Path) -> None:
    parsed = read(path)
    assert [error.path for error in parsed.errors] == REFUSED.get(path.name, [])
    assert len(parsed.pods) == (0 if parsed.errors else 1)
    for pod in parsed.pods:
        assert from_plain(to_plain(pod)) == pod


def test_what_is_said_about_them() -> None:
    findings = {path.name: read(path).findings for path in FILES}
    silent = {name for name, said in findings.items() if not said and name not in REFUSED}
    assert silent == RUNS_AS_ASKED
    assert not [finding for said in findings.values() for finding in said if "unknown field" in finding.message]
    assert [finding.path for finding in findings["pods_init-containers.yaml"]] == ["spec.initContainers"]
    assert {finding.severity for finding in findings["pods_probe_http-liveness.yaml"]} == {"warning"}
    dongle = findings["pods_resource_extended-resource-pod.yaml"]
    assert [(one.path, one.severity) for one in dongle] == [
        ("spec.containers[0].resources.limits.example.com/dongle", BLOCKING)
    ]
