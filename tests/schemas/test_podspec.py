"""The Pod types: encoding preserves all values, defaults match Kubernetes, and a digest identifies the content."""

import math
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from chronolet_schemas.podspec import (
    EmptyDir,
    Finding,
    ManifestError,
    Pod,
    PodSpec,
    defaulted,
    digest,
    from_plain,
    plain,
    pull_policy,
    to_plain,
)
from tests.schemas.podspec_strategy import plain_pods, pods

DRAWN = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

# Kubernetes 1.37, core/v1 PodSpec.
POD_SPEC = """
activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy
enableServiceLinks ephemeralContainers evictionResponders hostAliases hostIPC hostNetwork hostPID hostUsers
hostname hostnameOverride
imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName
readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates schedulingGroup
securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain
terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes
"""


def pod(**spec: Any) -> Pod:
    return from_plain({"metadata": {"name": "web"}, "spec": spec})


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "app", "image": "nginx:1", **fields}


def test_every_field_of_a_pod_spec_has_a_type() -> None:
    assert sorted(field.encode_name for field in msgspec.structs.fields(PodSpec)) == sorted(POD_SPEC.split())


@DRAWN
@given(pods())
def test_a_pod_survives_msgpack_and_another_library(drawn: Pod) -> None:
    sent = msgspec.msgpack.encode(drawn)
    assert msgspec.msgpack.decode(sent, type=Pod) == drawn
    elsewhere = msgpack.unpackb(sent, strict_map_key=True)
    assert msgspec.msgpack.decode(msgpack.packb(elsewhere), type=Pod) == drawn
    # Equal values, but not equal bytes: msgspec writes a longer header for a map with omitted defaults.
    assert msgpack.unpackb(msgpack.packb(elsewhere)) == elsewhere


@DRAWN
@given(pods())
def test_encoded_pods_hold_only_values_that_redis_can_decode(drawn: Pod) -> None:
    """The values include no bytes, extension types, integers beyond 2^53, or NaN."""
    refused = []

    def look(value: Any) -> None:
        match value:
            case dict():
                for key, held in value.items():
                    look(key)
                    look(held)
            case list():
                for held in value:
                    look(held)
            case bool() | str():
                pass
            case int():
                refused.extend([value] if abs(value) > 2**53 else [])
            case float():
                refused.extend([value] if math.isnan(value) else [])
            case _:
                refused.append(value)

    look(msgpack.unpackb(msgspec.msgpack.encode(drawn)))
    assert refused == []


@DRAWN
@given(plain_pods())
def test_the_plain_form_loses_nothing_but_defaults(drawn: dict[str, Any]) -> None:
    once = from_plain(drawn)
    again = from_plain(to_plain(once))
    assert again == once
    assert to_plain(again) == to_plain(once)


@DRAWN
@given(pods())
def test_defaulting_twice_changes_nothing(drawn: Pod) -> None:
    once = defaulted(drawn)
    assert defaulted(once) == once
    assert msgspec.msgpack.encode(defaulted(once)) == msgspec.msgpack.encode(once)
    assert digest(defaulted(once)) == digest(once)


def test_explicit_defaults_give_the_same_bytes_and_digest() -> None:
    short = defaulted(pod(containers=[container()]))
    long = defaulted(
        pod(
            containers=[container(imagePullPolicy="IfNotPresent", resources={}, terminationMessagePolicy="File")],
            restartPolicy="Always",
            terminationGracePeriodSeconds=30,
            dnsPolicy="ClusterFirst",
            schedulerName="default-scheduler",
            enableServiceLinks=True,
        )
    )
    assert long == short
    assert msgspec.msgpack.encode(long) == msgspec.msgpack.encode(short)
    assert digest(long) == digest(short)
    assert len(digest(short)) == 32


def test_a_digest_distinguishes_contents_and_ignores_fields_of_servers() -> None:
    one = pod(containers=[container()])
    assert digest(one) != digest(pod(containers=[container(image="nginx:2")]))
    stamped = msgspec.structs.replace(
        one, metadata=msgspec.structs.replace(one.metadata, uid="1", resource_version="7")
    )
    assert digest(stamped) == digest(one)
    renamed = msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, name="other"))
    assert digest(renamed) != digest(one)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("nginx@sha256:" + "0" * 64, "IfNotPresent"),
        ("nginx:1.27@sha256:" + "0" * 64, "IfNotPresent"),
        ("registry:5000/team/nginx", "Always"),
        ("registry:5000/team/nginx:1", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy
    assert defaulted(pod(containers=[container(image=image)])).spec.containers[0].image_pull_policy == policy


def test_an_explicit_pull_policy_is_kept() -> None:
    filled = defaulted(pod(containers=[container(image="nginx", imagePullPolicy="Never")]))
    assert filled.spec.containers[0].image_pull_policy == "Never"


def test_the_defaults_of_a_bare_pod() -> None:
    filled = defaulted(pod(containers=[container(ports=[{"containerPort": 80}])]))
    assert filled.key == "default/web"
    assert filled.spec.restart_policy == "Always"
    assert filled.spec.termination_grace_period_seconds == 30
    assert filled.spec.dns_policy == "ClusterFirst"
    assert filled.spec.containers[0].ports[0].protocol == "TCP"
    assert filled.spec.containers[0].ports[0].host_port == 0


def test_a_namespace_is_filled_in_but_not_replaced() -> None:
    bare = pod(containers=[container()])
    assert defaulted(bare, "team").key == "team/web"
    named = msgspec.structs.replace(bare, metadata=msgspec.structs.replace(bare.metadata, namespace="other"))
    assert defaulted(named, "team").key == "other/web"


def test_a_grace_period_of_zero_is_kept() -> None:
    assert defaulted(pod(terminationGracePeriodSeconds=0)).spec.termination_grace_period_seconds == 0


def test_limits_become_requests_if_there_are_none() -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    filled = defaulted(pod(containers=[container(resources=resources)]))
    assert filled.spec.containers[0].resources.requests == {"cpu": "500m", "memory": "1Gi"}


def test_a_volume_without_a_source_is_an_empty_dir() -> None:
    filled = defaulted(pod(volumes=[{"name": "a"}, {"name": "b", "hostPath": {"path": "/b"}}]))
    assert filled.spec.volumes[0].empty_dir == EmptyDir()
    assert filled.spec.volumes[1].empty_dir is None


def test_on_the_nodes_network_container_ports_are_host_ports() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]
    filled = defaulted(pod(hostNetwork=True, containers=[container(ports=ports)]))
    assert [port.host_port for port in filled.spec.containers[0].ports] == [80, 81]


def test_zeros_in_a_probe_mean_its_defaults() -> None:
    zeros = {"timeoutSeconds": 0, "periodSeconds": 0, "successThreshold": 0, "failureThreshold": 0}
    probe = {"exec": {"command": ["true"]}, **zeros}
    filled = defaulted(pod(containers=[container(livenessProbe=probe, startupProbe={"periodSeconds": 7})]))
    first = filled.spec.containers[0]
    assert plain(first.liveness_probe) == {"exec": {"command": ["true"]}}
    assert (first.liveness_probe.timeout_seconds, first.liveness_probe.period_seconds) == (1, 10)  # type: ignore[union-attr]
    assert first.startup_probe is not None
    assert first.startup_probe.period_seconds == 7
    assert first.readiness_probe is None


def test_the_plain_form_names_fields_as_the_api_does() -> None:
    spec = {
        "hostPID": True,
        "setHostnameAsFQDN": True,
        "containers": [container(ports=[{"containerPort": 1, "hostIP": "127.0.0.1"}])],
        "volumes": [{"name": "v", "downwardAPI": {"items": [{"path": "x"}]}}],
    }
    shown = to_plain(pod(**spec))
    assert shown["spec"] == {**spec, "containers": [container(ports=[{"containerPort": 1, "hostIP": "127.0.0.1"}])]}
    assert list(shown)[:2] == ["apiVersion", "kind"]


def test_errors_and_findings_are_shown_as_lines() -> None:
    error = ManifestError(file="web.yaml", document=2, path="spec.x", message="1 is above 0")
    assert str(error) == "web.yaml: document 2: spec.x: 1 is above 0"
    assert str(ManifestError(file="web.yaml", path="", message="empty")) == "web.yaml: empty"
    assert str(Finding(path="spec.x", severity="warning", message="unknown field")) == "spec.x: unknown field"
