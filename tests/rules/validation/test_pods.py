"""Problems with rights, names, mounts, references and hooks that Kubernetes would report, too, each with its path."""

from typing import Any

import pytest

from tests.rules.validation.test_validation import of


def of_one(spec: dict[str, Any] | None = None, **fields: Any) -> list[str]:
    """Return the problems with a pod that has this spec, the volume `v` by default, and one container with these
    fields. Paths start at the spec, or at the container.
    """
    container = {"name": "app", "image": "i:1", **fields}
    volumes = [{"name": "v", "emptyDir": {}}]
    found = of({"volumes": volumes, "containers": [container], **(spec or {})})
    return [line.removeprefix("spec.").removeprefix("containers[0].") for line in found]


GOOD_PODS: list[dict[str, Any]] = [
    {"hostNetwork": True, "hostPID": True, "hostIPC": True},
    {"shareProcessNamespace": True, "hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True},
    {"hostnameOverride": "other.name"},
    {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1", "::1"]}},
    {"dnsConfig": {"searches": [".", "a.test.", "_tcp.b"], "options": [{"name": "edns0"}]}},
    {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b.c"]}]},
    {"securityContext": {"runAsUser": 0, "fsGroup": 2147483647, "supplementalGroups": [1]}},
    {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}, {"name": "net/ipv4/a-b.c"}]}},
    {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "a/b.json"}}},
    {
        "volumes": [
            {"name": "v", "downwardAPI": {"items": [{"path": "a/b", "fieldRef": {"fieldPath": "metadata.name"}}]}}
        ]
    },
]
REFERENCE = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}
AMOUNT = {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
GOOD_CONTAINERS: list[dict[str, Any]] = [
    {"env": [REFERENCE, AMOUNT, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
    {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a", "mountPropagation": "HostToContainer"}]},
    {"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True, "recursiveReadOnly": "IfPossible"}]},
    {
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}],
    },
    {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["NET_ADMIN"]}}},
    {"securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": "/x"}}},
    {"lifecycle": {"preStop": {"sleep": {"seconds": 30}}, "postStart": {"exec": {"command": ["true"]}}}},
]


@pytest.mark.parametrize("spec", GOOD_PODS)
def test_pods_that_kubernetes_accepts(spec: dict[str, Any]) -> None:
    assert of_one(spec) == []


@pytest.mark.parametrize("fields", GOOD_CONTAINERS)
def test_containers_that_kubernetes_accepts(fields: dict[str, Any]) -> None:
    assert of_one(**fields) == []


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGUSR1", "SIGRTMIN", "SIGRTMIN+15", "SIGRTMAX-3"])
def test_signals(signal: str) -> None:
    assert of_one({"os": {"name": "linux"}}, lifecycle={"stopSignal": signal}) == []


def numbered(count: int) -> list[str]:
    return [f"s{number}.test" for number in range(count)]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"hostPID": True, "shareProcessNamespace": True}, "shareProcessNamespace: ShareProcessNamespace and HostPID"),
        ({"hostnameOverride": "a", "hostNetwork": True}, "hostnameOverride: cannot be set together with hostNetwork"),
        (
            {"hostnameOverride": "a", "setHostnameAsFQDN": True},
            "hostnameOverride: cannot be set together with setHostnameAsFQDN",
        ),
        ({"dnsPolicy": "None"}, "dnsConfig.nameservers: missing, expected at least one"),
        ({"dnsPolicy": "None", "dnsConfig": {"searches": ["a"]}}, "dnsConfig.nameservers: missing"),
        ({"dnsConfig": {"nameservers": ["1.1.1.1"] * 4}}, "dnsConfig.nameservers: has 4 entries, expected 3 at most"),
        ({"dnsConfig": {"nameservers": ["dns.test"]}}, "dnsConfig.nameservers[0]: 'dns.test' is not an IP address"),
        ({"dnsConfig": {"searches": numbered(33)}}, "dnsConfig.searches: has 33 entries, expected 32 at most"),
        ({"dnsConfig": {"searches": ["a" * 63 + ".test"] * 31}}, "dnsConfig.searches: has more than 2048 characters"),
        ({"dnsConfig": {"searches": ["no way"]}}, "dnsConfig.searches[0]: 'no way' is not allowed"),
        ({"dnsConfig": {"options": [{"value": "1"}]}}, "dnsConfig.options[0].name: missing"),
        ({"hostAliases": [{"ip": "here"}]}, "hostAliases[0].ip: 'here' is not an IP address"),
        ({"hostAliases": [{"ip": "::1", "hostnames": ["A"]}]}, "hostAliases[0].hostnames[0]: 'A' is not allowed"),
        ({"securityContext": {"runAsUser": -1}}, "securityContext.runAsUser: -1 is below 0"),
        ({"securityContext": {"runAsGroup": 1 << 31}}, "securityContext.runAsGroup: 2147483648 is above 2147483647"),
        ({"securityContext": {"fsGroup": -1}}, "securityContext.fsGroup: -1 is below 0"),
        ({"securityContext": {"supplementalGroups": [-1]}}, "securityContext.supplementalGroups[0]: -1 is below 0"),
        ({"securityContext": {"sysctls": [{"name": "a b"}]}}, "securityContext.sysctls[0].name: 'a b' is not a kernel"),
        ({"securityContext": {"sysctls": [{"name": "a"}] * 2}}, "securityContext.sysctls[1].name: 'a' is already used"),
        ({"securityContext": {"seccompProfile": {}}}, "securityContext.seccompProfile.type: missing"),
        (
            {"volumes": [{"name": "v", "downwardAPI": {"items": [{"path": "p"}]}}]},
            "volumes[0].downwardAPI.items[0]: expected one of fieldRef and resourceFieldRef",
        ),
    ],
)
def test_pods_that_kubernetes_refuses(spec: dict[str, Any], problem: str) -> None:
    (line,) = of_one(spec)
    assert line.startswith(problem)


def context(**fields: Any) -> dict[str, Any]:
    return {"securityContext": fields}


def mount(**fields: Any) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "v", "mountPath": "/v", **fields}]}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (context(runAsUser=-1), "securityContext.runAsUser: -1 is below 0"),
        (context(procMount="Unmasked"), "securityContext.procMount: `hostUsers` must be false to use `Unmasked`"),
        (
            context(allowPrivilegeEscalation=False, privileged=True),
            "securityContext: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
        ),
        (
            context(allowPrivilegeEscalation=False, capabilities={"add": ["CAP_SYS_ADMIN"]}),
            "securityContext: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
        ),
        (
            context(seccompProfile={"type": "Unconfined", "localhostProfile": "x"}),
            "securityContext.seccompProfile.localhostProfile: 'x' can only be set with the type Localhost",
        ),
        (
            context(appArmorProfile={"type": "Localhost"}),
            "securityContext.appArmorProfile.localhostProfile: missing, expected a profile of the node",
        ),
        (
            context(seccompProfile={"type": "Localhost", "localhostProfile": "../x"}),
            "securityContext.seccompProfile.localhostProfile: '../x' must be a relative path",
        ),
        (mount(subPath="a", subPathExpr="b"), "volumeMounts[0].subPathExpr: subPathExpr and subPath are mutually"),
        (
            mount(mountPropagation="Bidirectional"),
            "volumeMounts[0].mountPropagation: Bidirectional mount propagation is available only to privileged",
        ),
        (mount(recursiveReadOnly="Enabled"), "volumeMounts[0].recursiveReadOnly: may only be specified when readOnly"),
        (
            mount(recursiveReadOnly="Enabled", readOnly=True, mountPropagation="HostToContainer"),
            "volumeMounts[0].recursiveReadOnly: may only be specified when mountPropagation",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.colour"}}}]},
            "env[0].valueFrom.fieldRef.fieldPath: 'spec.colour' is not a field available here",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.colour"}}}]},
            "env[0].valueFrom.resourceFieldRef.resource: 'limits.colour' is not supported",
        ),
        (
            {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}},
            "lifecycle.preStop.sleep.seconds: 31 must be at least 0 and at most terminationGracePeriodSeconds (30)",
        ),
        ({"lifecycle": {"stopSignal": "SIGTERM"}}, "lifecycle.stopSignal: may not be set while `spec.os.name` is not"),
    ],
)
def test_containers_that_kubernetes_refuses(fields: dict[str, Any], problem: str) -> None:
    (line,) = of_one(**fields)
    assert line.startswith(problem)


@pytest.mark.parametrize("signal", ["TERM", "SIGNOTHING", "SIGRTMIN+16", "15"])
def test_unknown_signals_are_refused(signal: str) -> None:
    (line,) = of_one({"os": {"name": "linux"}}, lifecycle={"stopSignal": signal})
    assert line == f"lifecycle.stopSignal: {signal!r} is not a signal, expected a name such as SIGTERM"


def test_an_os_without_a_name_is_ignored() -> None:
    (line,) = of_one({"os": {}}, lifecycle={"stopSignal": "SIGTERM"})
    assert "spec.os.name" in line


def test_container_ports_on_the_nodes_network_are_host_ports() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}, {"containerPort": 82, "hostPort": 90}]
    assert of_one({"hostNetwork": True}, ports=ports) == [
        "ports[2].hostPort: 90 must match `containerPort` when `hostNetwork` is true"
    ]


def test_files_with_the_pods_own_fields() -> None:
    def of_item(**item: Any) -> list[str]:
        lines = of_one({"volumes": [{"name": "v", "downwardAPI": {"items": [item]}}]})
        return [line.removeprefix("volumes[0].downwardAPI.items[0].") for line in lines]

    name = {"fieldPath": "metadata.name"}
    assert of_item(fieldRef=name) == ["path: missing, expected a path in the volume"]
    assert of_item(path="/a", fieldRef=name)[0].startswith("path: '/a' leaves the volume")
    assert of_item(path="a/../b", fieldRef=name)[0].startswith("path: 'a/../b' leaves the volume")
    assert of_item(path="a", fieldRef=name, mode=0o1000) == ["mode: 512 is above 511"]
    assert of_item(path="a", fieldRef={"fieldPath": "status.podIP"})[0].startswith("fieldRef.fieldPath: 'status.podIP'")
    assert of_item(path="a", fieldRef={"fieldPath": "metadata.annotations['x']"}, mode=0o400) == []
    assert of_item(path="a", resourceFieldRef={"resource": "limits.cpu"}) == [
        "resourceFieldRef.containerName: missing, expected a container's name"
    ]
