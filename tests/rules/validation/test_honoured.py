"""Findings about fields that are not honoured: path and severity, and no finding where Kubernetes behaves the same."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from chronolet.rules.validation.honoured import blockers, findings
from chronolet.rules.validation.honoured_table import TABLE
from chronolet_schemas.podspec import (
    BLOCKING,
    WARNING,
    Container,
    EmptyDir,
    Finding,
    HostPath,
    Lifecycle,
    Part,
    Pod,
    PodSecurityContext,
    PodSpec,
    ResourceRequirements,
    SecurityContext,
    Volume,
    VolumeMount,
    defaulted,
    from_plain,
)
from tests.schemas.podspec_strategy import pods


def of(spec: dict[str, Any], **metadata: Any) -> list[tuple[str, str]]:
    """Return the severity and path of each finding for a pod with this spec, after manifest defaults are applied."""
    content = {
        "metadata": {"name": "web", **metadata},
        "spec": {"containers": [{"name": "app", "image": "i:1"}], **spec},
    }
    return [(finding.severity, finding.path) for finding in findings(defaulted(from_plain(content)))]


def of_container(**fields: Any) -> list[tuple[str, str]]:
    """Return the severity and path of each finding for a pod whose second container has these fields. Paths start at
    that container.
    """
    containers = [{"name": "first", "image": "i:1"}, {"name": "app", "image": "i:1", **fields}]
    found = of({"containers": containers})
    assert all(path.startswith("spec.containers[1].") for _, path in found)
    return [(severity, path.removeprefix("spec.containers[1].")) for severity, path in found]


HONOURED_SPECS: list[dict[str, Any]] = [
    {"restartPolicy": "Never"},
    {"terminationGracePeriodSeconds": 0},
    {"enableServiceLinks": False},
    {"hostNetwork": True, "hostPID": True, "hostIPC": True, "shareProcessNamespace": True},
    {"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True, "hostnameOverride": "o"},
    {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"]}, "hostAliases": [{"ip": "1.1.1.1"}]},
    {"securityContext": {"runAsUser": 1, "fsGroup": 2, "sysctls": [{"name": "a"}], "runAsNonRoot": True}},
    {"hostUsers": True},
    {"shareProcessNamespace": False, "setHostnameAsFQDN": False},
    {"automountServiceAccountToken": False},
    {"serviceAccountName": "default", "serviceAccount": "default"},
    {"securityContext": {}},
    {"securityContext": {"runAsNonRoot": False, "supplementalGroupsPolicy": "Merge"}},
    {"affinity": {}, "nodeSelector": {}, "tolerations": [], "dnsConfig": {}, "os": {"name": "linux"}},
    {"dnsPolicy": "Default"},
    {"dnsPolicy": "ClusterFirstWithHostNet"},
    {"volumes": [{"name": "a", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]},
    {"volumes": [{"name": "a", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.uid"}}]}}]},
    {"volumes": [{"name": "a", "hostPath": {"path": "/a", "type": "Socket"}}]},
    {"preemptionPolicy": "PreemptLowerPriority", "schedulerName": "default-scheduler"},
    {"initContainers": [], "ephemeralContainers": []},
    {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b"}]},
    {
        "volumes": [
            {"name": "a", "hostPath": {"path": "/a"}},
            {"name": "b", "hostPath": {"path": "/b", "type": "Socket"}},
        ]
    },
    {"resources": {}},
    {"resources": {"requests": {"hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}}},
]


@pytest.mark.parametrize("spec", HONOURED_SPECS)
def test_honoured_fields_and_defaults_have_no_findings(spec: dict[str, Any]) -> None:
    assert of(spec) == []


WARNED = [
    ("tolerations", [{"key": "a"}]),
    ("nodeName", "other"),
    ("tolerations", [{"operator": "Exists"}]),
    ("topologySpreadConstraints", [{"maxSkew": 1}]),
    ("schedulerName", "mine"),
    ("schedulingGates", [{"name": "g"}]),
    ("schedulingGroup", {"podGroupName": "g"}),
    ("priority", 1),
    ("priorityClassName", "high"),
    ("preemptionPolicy", "Never"),
    ("evictionResponders", [{"name": "a/b"}]),
    ("readinessGates", [{"conditionType": "x"}]),
    ("serviceAccountName", "robot"),
    ("serviceAccount", "robot"),
    ("automountServiceAccountToken", True),
]
BLOCKED = [
    ("hostUsers", False),
    ("runtimeClassName", "kata"),
    ("resourceClaims", [{"name": "gpu"}]),
]


@pytest.mark.parametrize(
    ("field", "value", "severity"), [*((*one, WARNING) for one in WARNED), *((*one, BLOCKING) for one in BLOCKED)]
)
def test_a_field_of_the_pod(field: str, value: Any, severity: str) -> None:
    assert of({field: value}) == [(severity, f"spec.{field}")]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("os.name", {"os": {"name": "windows"}}),
        ("resources.limits.ephemeral-storage", {"resources": {"limits": {"ephemeral-storage": "2Mi"}}}),
        ("resources.requests.ephemeral-storage", {"resources": {"requests": {"ephemeral-storage": "2Mi"}}}),
        ("resources.claims", {"resources": {"claims": [{"name": "c"}]}}),
        ("securityContext.supplementalGroupsPolicy", {"securityContext": {"supplementalGroupsPolicy": "Strict"}}),
        ("volumes[1].configMap", {"volumes": [{"name": "a"}, {"name": "v", "configMap": {}}]}),
        ("volumes[0].secret", {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
        ("volumes[0].projected", {"volumes": [{"name": "v", "projected": {"sources": []}}]}),
        ("volumes[0].emptyDir.medium", {"volumes": [{"name": "v", "emptyDir": {"medium": "HugePages"}}]}),
        ("volumes[0].csi", {"volumes": [{"name": "v", "csi": {}}]}),
        ("volumes[0].persistentVolumeClaim", {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}),
    ],
)
def test_a_nested_field_of_the_pod_that_blocks(path: str, value: dict[str, Any]) -> None:
    assert of(value) == [(BLOCKING, f"spec.{path}")]


def test_nested_fields_of_the_pod_that_warn() -> None:
    assert of({"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}, "overhead": {"cpu": "1"}}) == []
    limited = {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]}
    assert of(limited) == [(WARNING, "spec.volumes[0].emptyDir.sizeLimit")]
    assert of({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}]}) == []
    windows = {"securityContext": {"windowsOptions": {"runAsUserName": "x"}}}
    assert of(windows) == [(WARNING, "spec.securityContext.windowsOptions")]


def test_metadata() -> None:
    assert of({}, labels={"a": "b"}, annotations={"c": "d"}, uid="1", ownerReferences=[{"name": "x"}]) == []
    assert of({}, finalizers=["a/b"]) == [(WARNING, "metadata.finalizers")]
    key = "container.apparmor.security.beta.kubernetes.io/app"
    assert of({}, annotations={key: "localhost/strict"}) == [(BLOCKING, f"metadata.annotations.{key}")]
    assert of({}, annotations={key: "runtime/default"}) == []


HONOURED_FIELDS: dict[str, Any] = {
    "command": ["sh"],
    "livenessProbe": {"exec": {"command": ["true"]}},
    "readinessProbe": {"exec": {"command": ["true"]}},
    "startupProbe": {"exec": {"command": ["true"]}},
    "args": ["-c"],
    "workingDir": "/",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "ports": [{"containerPort": 80, "hostPort": 81, "hostIP": "127.0.0.1", "protocol": "UDP", "name": "dns"}],
    "resources": {"limits": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}, "requests": {"cpu": "1"}},
    "imagePullPolicy": "Never",
    "volumeMounts": [
        {"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional", "recursiveReadOnly": "IfPossible"},
        {"name": "v", "mountPath": "/w", "subPath": "a"},
        {"name": "v", "mountPath": "/x", "subPathExpr": "$(A)"},
    ],
    "securityContext": {
        "privileged": True,
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "procMount": "Default",
        "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        "seccompProfile": {"type": "Unconfined"},
    },
    "stdin": True,
    "stdinOnce": True,
    "tty": True,
    "lifecycle": {"stopSignal": "SIGINT"},
    "terminationMessagePath": "/dev/termination-log",
}


@pytest.mark.parametrize("field", HONOURED_FIELDS)
def test_a_containers_honoured_fields_have_no_findings(field: str) -> None:
    assert of_container(**{field: HONOURED_FIELDS[field]}) == []


@pytest.mark.parametrize(
    ("severity", "path", "fields"),
    [
        (WARNING, "resizePolicy", {"resizePolicy": [{"resourceName": "cpu"}]}),
        (WARNING, "resources.requests.ephemeral-storage", {"resources": {"requests": {"ephemeral-storage": "1"}}}),
        (WARNING, "resources.limits.ephemeral-storage", {"resources": {"limits": {"ephemeral-storage": "1"}}}),
        (WARNING, "securityContext.windowsOptions", {"securityContext": {"windowsOptions": {"runAsUserName": "x"}}}),
        (BLOCKING, "resources.limits.x.kubernetes.io/gpu", {"resources": {"limits": {"x.kubernetes.io/gpu": "1"}}}),
        (BLOCKING, "resources.requests.x.kubernetes.io/y", {"resources": {"requests": {"x.kubernetes.io/y": "1"}}}),
        (BLOCKING, "resources.limits.storage", {"resources": {"limits": {"storage": "2Mi"}}}),
        (BLOCKING, "resources.claims", {"resources": {"claims": [{"name": "c"}]}}),
        (
            BLOCKING,
            "env[1].valueFrom.secretKeyRef",
            {"env": [{"name": "A"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s"}}}]},
        ),
        (BLOCKING, "securityContext.procMount", {"securityContext": {"procMount": "Unmasked"}}),
        (BLOCKING, "envFrom", {"envFrom": [{"secretRef": {"name": "s"}}]}),
        (BLOCKING, "restartPolicy", {"restartPolicy": "Always"}),
        (BLOCKING, "restartPolicyRules", {"restartPolicyRules": [{"action": "Restart"}]}),
        (BLOCKING, "volumeMounts[0].recursiveReadOnly", {"volumeMounts": [{"recursiveReadOnly": "Enabled"}]}),
        (BLOCKING, "volumeDevices", {"volumeDevices": [{"name": "v"}]}),
        (BLOCKING, "lifecycle.preStop.tcpSocket", {"lifecycle": {"preStop": {"tcpSocket": {"port": 1}}}}),
        (BLOCKING, "lifecycle.postStart.tcpSocket", {"lifecycle": {"postStart": {"tcpSocket": {"port": 1}}}}),
    ],
)
def test_a_field_of_a_container(severity: str, path: str, fields: dict[str, Any]) -> None:
    assert of_container(**fields) == [(severity, path)]


def test_a_finding_names_the_value_and_its_missing_effect() -> None:
    pod = defaulted(
        from_plain(
            {
                "metadata": {"name": "web"},
                "spec": {"hostUsers": False, "runtimeClassName": "h", "affinity": {"podAffinity": {"a": 1}}},
            }
        )
    )
    messages = {finding.path: finding.message for finding in findings(pod)}
    assert messages["spec.hostUsers"] == "false is not honoured: containers do not get their own user namespace yet"
    assert messages["spec.runtimeClassName"].startswith("'h' is not honoured: only Docker's default runtime")
    assert messages["spec.affinity.podAffinity"].startswith("not honoured: only a scheduler reads this")
    assert {finding.pod for finding in findings(pod)} == {"default/web"}


def test_findings_that_block_the_start_of_a_container() -> None:
    names = [f"c{index}" for index in range(11)]
    pod = from_plain({"spec": {"initContainers": [{"name": "init"}], "containers": [{"name": one} for one in names]}})
    own = Finding(path="spec.containers[1].tty", severity=BLOCKING, message="m")
    tenth = Finding(path="spec.containers[10].tty", severity=BLOCKING, message="m")
    init = Finding(path="spec.initContainers[0].tty", severity=BLOCKING, message="m")
    warned = Finding(path="spec.hostname", severity=WARNING, message="m")
    whole = Finding(path="spec.hostPID", severity=BLOCKING, message="m")
    assert list(blockers(pod, [warned, tenth, own, init])) == [("init", init), ("c1", own), ("c10", tenth)]
    assert dict(blockers(pod, [warned, own, whole])) == dict.fromkeys(("init", *names), whole) | {"c1": own}
    assert list(blockers(pod, [])) == []


@pytest.mark.parametrize(
    ("spec", "blocked"),
    [
        ({"initContainers": [{"name": "init", "restartPolicy": "Always"}]}, []),
        (
            {"initContainers": [{"name": "init", "restartPolicy": "Never"}]},
            ["spec.initContainers[0].restartPolicy"],
        ),
        ({"initContainers": [{"name": "init", "volumeDevices": [{}]}]}, ["spec.initContainers[0].volumeDevices"]),
        ({"ephemeralContainers": [{"name": "debug", "targetContainerName": "app"}]}, []),
    ],
)
def test_init_and_ephemeral_containers_are_checked_too(spec: Any, blocked: list[str]) -> None:
    assert [one.path for one in findings(from_plain({"spec": spec})) if one.severity == BLOCKING] == blocked


@pytest.mark.parametrize(
    ("prefix", "part"),
    [
        ("spec", PodSpec),
        ("spec.containers", Container),
        ("spec.containers.volumeMounts", VolumeMount),
        ("spec.containers.lifecycle", Lifecycle),
        ("spec.containers.securityContext", SecurityContext),
        ("spec.containers.resources", ResourceRequirements),
        ("spec.securityContext", PodSecurityContext),
        ("spec.resources", ResourceRequirements),
        ("spec.volumes", Volume),
        ("spec.volumes.emptyDir", EmptyDir),
        ("spec.volumes.hostPath", HostPath),
    ],
)
def test_no_field_is_without_a_verdict(prefix: str, part: type[Part]) -> None:
    """A field that is new in Kubernetes makes this test fail until the field has a verdict in the table."""
    honoured = {
        "spec.volumes": {"volumes"},
        "spec.containers.volumeMounts": {"name", "readOnly", "mountPath"},
        "spec.volumes.hostPath": {"path"},
    }.get(prefix, set())
    keys = {field.encode_name for field in msgspec.structs.fields(part)}
    verdicts = {key for key in keys if f"{prefix}.{key}" in TABLE or f"{prefix}.*" in TABLE}
    assert keys - verdicts - honoured - ({"volumes"} if prefix == "spec" else set()) == set()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(pods())
def test_any_pod_has_findings_with_paths(drawn: Pod) -> None:
    for finding in findings(defaulted(drawn)):
        assert finding.path.startswith(("spec.", "metadata."))
        assert finding.severity in (WARNING, BLOCKING)
        assert finding.message
