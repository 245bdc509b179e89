"""Problems with a Pod that Kubernetes would report, too, each with its path."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from chronolet.rules.validation.pods import problems
from chronolet_schemas.podspec import Pod, defaulted, from_plain
from tests.schemas.podspec_strategy import pods


def of(spec: dict[str, Any] | None = None, **metadata: Any) -> list[str]:
    """Return the problems with an otherwise valid pod that has these fields, as `path: message`."""
    containers = [{"name": "app", "image": "nginx:1"}]
    content = {"metadata": {"name": "web", **metadata}, "spec": {"containers": containers, **(spec or {})}}
    return [f"{path}: {message}" for path, message in problems(defaulted(from_plain(content)))]


def of_container(**fields: Any) -> list[str]:
    """Return the problems with the only container of an otherwise valid pod, if the container has these fields. Paths
    start at the container. The pod has the volumes v and w.
    """
    spec = {
        "volumes": [{"name": "v"}, {"name": "w"}],
        "containers": [{"name": "app", "image": "nginx:1", **fields}],
    }
    return [line.removeprefix("spec.containers[0].") for line in of(spec)]


GOOD: list[dict[str, Any]] = [
    {},
    {"terminationGracePeriodSeconds": 0, "activeDeadlineSeconds": 1},
    {
        "initContainers": [
            {
                "name": "proxy",
                "image": "i",
                "restartPolicy": "Always",
                "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
            }
        ]
    },
    {"hostname": "web", "nodeName": "a.b", "nodeSelector": {"a.b/c": "", "d": "E"}},
    {"volumes": [{"name": "v", "hostPath": {"path": "/a/..b"}}, {"name": "w", "emptyDir": {"sizeLimit": "1Gi"}}]},
    {"overhead": {"cpu": "1m"}, "resources": {"limits": {"cpu": "2"}}},
    {
        "initContainers": [{"name": "init", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1}]}],
        "containers": [
            {"name": "a", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1}]},
            {"name": "b", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1, "protocol": "UDP"}]},
            {"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 1, "hostIP": "127.0.0.1"}]},
        ],
    },
]


@pytest.mark.parametrize("spec", GOOD)
def test_pods_that_kubernetes_accepts(spec: dict[str, Any]) -> None:
    assert of(spec) == []


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"name": ""}, "metadata.name: missing, expected the pod's name"),
        (
            {"name": "", "generateName": "web-"},
            "metadata.name: missing, expected the pod's name; names are not generated here",
        ),
        ({"name": "Web"}, "metadata.name: 'Web' is not allowed, expected lower-case letters"),
        ({"namespace": "a.b"}, "metadata.namespace: 'a.b' is not allowed"),
        ({"labels": {"a b": "c"}}, "metadata.labels: key 'a b' is not allowed"),
        ({"labels": {"a": "-"}}, "metadata.labels.a: '-' is not allowed"),
        ({"annotations": {"a b": "c"}}, "metadata.annotations: key 'a b' is not allowed"),
        ({"annotations": {"a": "x" * 262144}}, "metadata.annotations: 262145 bytes are above 262144"),
    ],
)
def test_metadata(metadata: dict[str, Any], expected: str) -> None:
    (problem,) = of({}, **metadata)
    assert problem.startswith(expected)


def test_the_key_of_an_annotation_may_have_capital_letters() -> None:
    assert of({}, annotations={"Example.com/Some_Key": "x" * 262000}) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": []}, "spec.containers: missing, expected at least one container"),
        ({"terminationGracePeriodSeconds": -1}, "spec.terminationGracePeriodSeconds: -1 is below 0"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds: 0 is below 1"),
        ({"hostname": "a.b"}, "spec.hostname: 'a.b' is not allowed"),
        ({"subdomain": "A"}, "spec.subdomain: 'A' is not allowed"),
        ({"nodeName": "A"}, "spec.nodeName: 'A' is not allowed"),
        ({"serviceAccountName": "A"}, "spec.serviceAccountName: 'A' is not allowed"),
        ({"priorityClassName": "A"}, "spec.priorityClassName: 'A' is not allowed"),
        ({"runtimeClassName": "A"}, "spec.runtimeClassName: 'A' is not allowed"),
        ({"nodeSelector": {"/": "a"}}, "spec.nodeSelector: key prefix is empty"),
        ({"nodeSelector": {"a": "b c"}}, "spec.nodeSelector.a: 'b c' is not allowed"),
        ({"overhead": {"cpu": "x"}}, "spec.overhead.cpu: 'x' is not a quantity"),
        ({"resources": {"limits": {"cpu": "-1"}}}, "spec.resources.limits.cpu: -1 is below 0"),
        ({"volumes": [{"name": ""}]}, "spec.volumes[0].name: is empty"),
        ({"volumes": [{"name": "V"}]}, "spec.volumes[0].name: 'V' is not allowed"),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, "spec.volumes[1].name: 'v' is already used by spec.volumes[0]"),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "secret": {}}]},
            "spec.volumes[0]: names 2 sources (emptyDir, secret), expected one",
        ),
        ({"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Q"}}]}, "spec.volumes[0].emptyDir.sizeLimit: '1Q' has"),
        ({"volumes": [{"name": "v", "hostPath": {"path": ""}}]}, "spec.volumes[0].hostPath.path: missing"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "a"}}]}, "spec.volumes[0].hostPath.path: 'a' is relative"),
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]},
            "spec.volumes[0].hostPath.path: '/a/../b' contains",
        ),
        (
            {"initContainers": [{"name": "app", "image": "i"}]},
            "spec.containers[0].name: 'app' is already the name of spec.initContainers[0]",
        ),
        (
            {"ephemeralContainers": [{"name": "app", "image": "i"}]},
            "spec.ephemeralContainers[0].name: 'app' is already the name of spec.containers[0]",
        ),
        ({"initContainers": [{"name": "init"}]}, "spec.initContainers[0].image: missing"),
        (
            {"initContainers": [{"name": "init", "image": "i", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}]},
            "spec.initContainers[0].lifecycle: may not be set for an init container, unless its restartPolicy is",
        ),
        (
            {"ephemeralContainers": [{"name": "debug", "image": "i", "ports": [{"containerPort": 1}]}]},
            "spec.ephemeralContainers[0].ports: may not be set for an ephemeral container",
        ),
        (
            {
                "containers": [
                    {"name": "a", "image": "i", "ports": [{"containerPort": 1, "hostPort": 8080}]},
                    {"name": "b", "image": "i", "ports": [{"containerPort": 2, "hostPort": 8080}]},
                ]
            },
            "spec.containers[1].ports[0].hostPort: 8080/TCP is already taken by spec.containers[0].ports[0].hostPort",
        ),
    ],
)
def test_the_spec(spec: dict[str, Any], expected: str) -> None:
    (problem,) = of(spec)
    assert problem.startswith(expected)


GOOD_CONTAINERS: list[dict[str, Any]] = [
    {"ports": [{"containerPort": 65535, "hostPort": 65535, "hostIP": "::1", "name": "http"}]},
    {
        "env": [
            {"name": "A.b", "value": "x=y"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ]
    },
    {"resources": {"limits": {"cpu": "0.5", "memory": "1Gi", "a.b/c": "2", "hugepages-2Mi": "4Mi"}}},
    {"resources": {"requests": {"cpu": "100m"}}},
    {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a/b"}, {"name": "v", "mountPath": "/w"}]},
    {
        "ports": [{"name": "http", "containerPort": 80}],
        "livenessProbe": {"tcpSocket": {"port": "http"}, "terminationGracePeriodSeconds": 1},
        "startupProbe": {"httpGet": {"port": "http"}},
    },
    {"readinessProbe": {"grpc": {"port": 1}, "successThreshold": 2}},
    {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}, "postStart": {"exec": {"command": ["true"]}}}},
]


@pytest.mark.parametrize("fields", GOOD_CONTAINERS)
def test_containers_that_kubernetes_accepts(fields: dict[str, Any]) -> None:
    assert of_container(**fields) == []


def pages(size: str, much: str) -> dict[str, Any]:
    return {"resources": {"limits": {"memory": "1Gi", f"hugepages-{size}": much}}}


def probe(**fields: Any) -> dict[str, Any]:
    return {"livenessProbe": {"exec": {"command": ["true"]}, **fields}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, "name: missing, expected the container's name"),
        ({"name": "App"}, "name: 'App' is not allowed"),
        ({"image": ""}, "image: missing, expected an image such as"),
        ({"image": " nginx"}, "image: ' nginx' begins or ends with a blank"),
        ({"ports": [{}]}, "ports[0].containerPort: missing, expected 1 to 65535"),
        ({"ports": [{"containerPort": 70000}]}, "ports[0].containerPort: 70000 is above 65535"),
        ({"ports": [{"containerPort": -1}]}, "ports[0].containerPort: -1 is below 1"),
        ({"ports": [{"containerPort": 1, "hostPort": 70000}]}, "ports[0].hostPort: 70000 is above 65535"),
        ({"ports": [{"containerPort": 1, "hostPort": -1}]}, "ports[0].hostPort: -1 is below 0"),
        ({"ports": [{"containerPort": 1, "hostIP": "local"}]}, "ports[0].hostIP: 'local' is not an IP address"),
        ({"ports": [{"containerPort": 1, "name": "80"}]}, "ports[0].name: '80' is not allowed"),
        (
            {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
            "ports[1].name: 'a' is already used by spec.containers[0].ports[0]",
        ),
        ({"env": [{"value": "x"}]}, "env[0].name: missing"),
        ({"env": [{"name": "A=B"}]}, "env[0].name: 'A=B' is not allowed"),
        ({"env": [{"name": "A", "valueFrom": {}}]}, "env[0].valueFrom: names 0 sources, expected one"),
        (
            {"env": [{"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {"name": "s"}}}]},
            "env[0].valueFrom: is set together with value",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}, "fieldRef": {"fieldPath": "x"}}}]},
            "env[0].valueFrom: names 2 sources",
        ),
        ({"resources": {"limits": {"cpu": "many"}}}, "resources.limits.cpu: 'many' is not a quantity"),
        ({"resources": {"requests": {"memory": "-1"}}}, "resources.requests.memory: -1 is below 0"),
        ({"resources": {"limits": {"memory": "9E"}}}, "resources.limits.memory: '9E' is out of range"),
        ({"resources": {"limits": {"a/b": "500m"}}}, "resources.limits.a/b: 500m is not a whole number"),
        ({"resources": {"limits": {"a b": "1"}}}, "resources.limits: key 'a b' is not allowed"),
        (pages("2Mi", "3Mi"), "resources.limits.hugepages-2Mi: 3Mi is not a multiple of the page size 2Mi"),
        (pages("many", "0"), "resources.limits.hugepages-many: 'many' is not a page size, expected one such as"),
        (pages("0", "0"), "resources.limits.hugepages-0: '0' is not a page size"),
        (pages("3", "0"), "resources.limits.hugepages-3: '3' is not a page size"),
        ({"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}, "resources: has huge pages only, expected cpu or"),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}}},
            "resources.requests.cpu: 1001m is above the limit 1",
        ),
        (
            {"resources": {"limits": {"a/b": "2"}, "requests": {"a/b": "1"}}},
            "resources.requests.a/b: 1 is below the limit 2, expected the same",
        ),
        ({"resources": {"requests": {"a/b": "1"}}}, "resources.limits: names no a/b, expected the request's 1"),
        ({"resources": {"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}}}, "resources.limits: names no hugepages-2Mi"),
        ({"volumeMounts": [{"mountPath": "/a"}]}, "volumeMounts[0].name: missing"),
        (
            {"volumeMounts": [{"name": "x", "mountPath": "/a"}]},
            "volumeMounts[0].name: 'x' is not among the pod's volumes (v, w)",
        ),
        ({"volumeMounts": [{"name": "v"}]}, "volumeMounts[0].mountPath: missing"),
        ({"volumeMounts": [{"name": "v", "mountPath": "/a:b"}]}, "volumeMounts[0].mountPath: '/a:b' contains ':'"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}]},
            "volumeMounts[1].mountPath: '/a' is already used by spec.containers[0].volumeMounts[0]",
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "../b"}]},
            "volumeMounts[0].subPath: '../b' leaves",
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a", "subPathExpr": "/b"}]},
            "volumeMounts[0].subPathExpr: '/b' leaves",
        ),
        ({"livenessProbe": {}}, "livenessProbe: found no handler, expected one of exec, httpGet"),
        (probe(tcpSocket={"port": 1}), "livenessProbe: found exec, tcpSocket, expected one of"),
        ({"livenessProbe": {"exec": {}}}, "livenessProbe.exec.command: missing"),
        ({"startupProbe": {"httpGet": {}}}, "startupProbe.httpGet.port: missing"),
        ({"startupProbe": {"httpGet": {"port": ""}}}, "startupProbe.httpGet.port: missing"),
        ({"startupProbe": {"httpGet": {"port": 0}}}, "startupProbe.httpGet.port: 0 is below 1"),
        (
            {"readinessProbe": {"tcpSocket": {"port": "no port"}}},
            "readinessProbe.tcpSocket.port: 'no port' is not allowed",
        ),
        ({"readinessProbe": {"grpc": {"port": 65536}}}, "readinessProbe.grpc.port: 65536 is above 65535"),
        (probe(initialDelaySeconds=-1), "livenessProbe.initialDelaySeconds: -1 is below 0"),
        (probe(timeoutSeconds=-1), "livenessProbe.timeoutSeconds: -1 is below 1"),
        (probe(periodSeconds=-1), "livenessProbe.periodSeconds: -1 is below 1"),
        (probe(successThreshold=2), "livenessProbe.successThreshold: 2 is above 1"),
        (probe(successThreshold=-1), "livenessProbe.successThreshold: -1 is below 1"),
        (probe(failureThreshold=-1), "livenessProbe.failureThreshold: -1 is below 1"),
        (
            {"ports": [{"name": "web", "containerPort": 80}], "livenessProbe": {"httpGet": {"port": "http"}}},
            "livenessProbe.httpGet.port: 'http' is not among the container's ports (web)",
        ),
        (
            {"startupProbe": {"tcpSocket": {"port": "http"}}},
            "startupProbe.tcpSocket.port: 'http' is not among the container's ports (it has no named ports)",
        ),
        (
            {"readinessProbe": {"exec": {"command": ["true"]}, "terminationGracePeriodSeconds": 5}},
            "readinessProbe.terminationGracePeriodSeconds: may not be set",
        ),
        (probe(sleep={"seconds": 1}, exec=None), "livenessProbe: found no handler"),
        (probe(terminationGracePeriodSeconds=0), "livenessProbe.terminationGracePeriodSeconds: 0 is below 1"),
        ({"lifecycle": {"preStop": {}}}, "lifecycle.preStop: found no handler"),
        ({"lifecycle": {"postStart": {"tcpSocket": {}}}}, "lifecycle.postStart.tcpSocket.port: missing"),
    ],
)
def test_a_container(fields: dict[str, Any], expected: str) -> None:
    (problem,) = of_container(**fields)
    assert problem.startswith(expected)


def test_an_unreadable_limit_is_reported_once() -> None:
    resources = {"limits": {"cpu": "x"}, "requests": {"cpu": "1"}}
    assert len(of_container(resources=resources)) == 1


def test_a_long_list_of_volumes_is_not_repeated_for_every_mount() -> None:
    mounts = [{"name": "x", "mountPath": f"/{index}"} for index in range(3)]
    spec = {
        "volumes": [{"name": f"v{index}"} for index in range(11)],
        "containers": [{"name": "a", "image": "i", "volumeMounts": mounts}],
    }
    assert of(spec) == [
        f"spec.containers[0].volumeMounts[{index}].name: 'x' is not among the pod's volumes" for index in range(3)
    ]
    spec["volumes"] = []
    assert of(spec)[0].endswith("volumes (it has none)")


def test_all_problems_are_reported_together() -> None:
    bad = {"name": "A", "image": "", "ports": [{"containerPort": 0}, {"containerPort": 70000}]}
    paths = [line.partition(": ")[0] for line in of({"containers": [bad, {"name": "b"}]}, name="")]
    assert paths == [
        "metadata.name",
        "spec.containers[0].name",
        "spec.containers[0].image",
        "spec.containers[0].ports[0].containerPort",
        "spec.containers[0].ports[1].containerPort",
        "spec.containers[1].image",
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(pods())
def test_validation_handles_any_pod(drawn: Pod) -> None:
    for path, message in problems(defaulted(drawn)):
        assert path.startswith(("metadata", "spec"))
        assert message
