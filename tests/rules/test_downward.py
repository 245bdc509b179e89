"""The downward API, through which containers get fields and resources of their pod."""

from typing import Any

import pytest

from chronolet.rules import downward, expansion
from chronolet.rules.downward import Place, UnknownReferenceError
from chronolet_schemas.podspec import EnvVarSource, Pod, from_plain

PLACE = Place(
    node="n1", host_ip="10.0.0.1", pod_ip="172.17.0.2", cpu_milli=2000, memory_bytes=1 << 30, storage_bytes=10**9
)


def pod(**spec: Any) -> Pod:
    metadata = {
        "name": "web",
        "namespace": "shop",
        "uid": "u-1",
        "labels": {"b": "2", "a": "1"},
        "annotations": {"x/y": 'say "hi"\n\\'},
    }
    limits = {"cpu": "1500m", "memory": "100Mi"}
    app = {"name": "app", "resources": {"limits": limits, "requests": {"cpu": "250m"}}}
    init = {"name": "init"}
    return from_plain({"metadata": metadata, "spec": {"initContainers": [init], "containers": [app], **spec}})


def source(**kinds: Any) -> EnvVarSource:
    made = from_plain({"spec": {"containers": [{"env": [{"name": "A", "valueFrom": kinds}]}]}})
    found = made.spec.containers[0].env[0].value_from
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['x/y']", 'say "hi"\n\\'),
        ("metadata.labels", 'a="1"\nb="2"'),
        ("metadata.annotations", 'x/y="say \\"hi\\"\\n\\\\"'),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "10.0.0.1"),
        ("status.hostIPs", "10.0.0.1"),
        ("status.podIP", "172.17.0.2"),
        ("status.podIPs", "172.17.0.2"),
    ],
)
def test_fields(path: str, text: str) -> None:
    assert downward.field(path, pod(serviceAccountName="robot"), PLACE) == text


def test_a_field_that_is_not_there() -> None:
    with pytest.raises(UnknownReferenceError, match=r"unsupported fieldPath: spec\.colour"):
        downward.field("spec.colour", pod(), PLACE)


@pytest.mark.parametrize(
    ("name", "divisor", "text"),
    [
        ("limits.cpu", "", "2"),
        ("limits.cpu", "1m", "1500"),
        ("limits.cpu", "0", "2"),
        ("requests.cpu", "1", "1"),
        ("requests.cpu", "1m", "250"),
        ("limits.memory", "1Mi", "100"),
        ("limits.memory", "", str(100 << 20)),
        ("requests.memory", "", "0"),
        ("limits.ephemeral-storage", "1M", "1000"),
    ],
)
def test_resources(name: str, divisor: str, text: str) -> None:
    assert downward.resource(name, divisor, pod().spec.containers[0], PLACE) == text


def test_an_unset_limit_is_what_the_node_has() -> None:
    init = pod().spec.init_containers[0]
    assert downward.resource("limits.cpu", "1m", init, PLACE) == "2000"
    assert downward.resource("limits.memory", "", init, PLACE) == str(1 << 30)


def test_a_resource_that_is_not_there() -> None:
    with pytest.raises(UnknownReferenceError, match=r"unsupported container resource : limits\.colour"):
        downward.resource("limits.colour", "", pod().spec.containers[0], PLACE)


def test_references() -> None:
    manifest = pod()
    init = manifest.spec.init_containers[0]

    def value(**kinds: Any) -> str:
        return downward.value(source(**kinds), manifest, init, PLACE)

    assert value(fieldRef={"fieldPath": "metadata.name"}) == "web"
    assert value(resourceFieldRef={"resource": "requests.cpu"}) == "0"
    assert value(resourceFieldRef={"resource": "requests.cpu", "containerName": "app"}) == "1"
    with pytest.raises(UnknownReferenceError, match="container other not found"):
        value(resourceFieldRef={"resource": "requests.cpu", "containerName": "other"})
    with pytest.raises(UnknownReferenceError, match="expected fieldRef or resourceFieldRef"):
        value(secretKeyRef={"name": "s", "key": "k"})


def test_a_reference_is_usable_by_later_variables_and_is_not_expanded_itself() -> None:
    variables = [
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "B", "value": "$(A)!"},
    ]
    made = from_plain({"spec": {"containers": [{"env": variables}]}})
    known = expansion.environment(made.spec.containers[0].env, lambda _: "$(B)")
    assert known == {"A": "$(B)", "B": "$(B)!"}
