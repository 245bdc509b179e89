"""The table behind `honoured`: for each field of a v1 Pod, whether chronolet honours it.

Input: none. Output: `TABLE`. Next: `honoured`. A path is written as in findings, without list indices; `*` matches any
key of a map, `*/*` the name of an extended resource. A field that is not listed inherits the verdict of its nearest
listed parent. Values in `unless` correspond to what chronolet does anyway, so they are not reported.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from chronolet_schemas.podspec import BLOCKING, WARNING, Severity


class Verdict(msgspec.Struct, frozen=True):
    """How a field is treated. If `severity` is None, the field is honoured.

    `message`: the consequence for the user. `inside`: whether each nested field is reported separately, instead of the
    field as a whole.
    """

    severity: Severity | None
    message: str = ""
    unless: tuple[Any, ...] = ()
    inside: bool = False


HONOURED: Final = Verdict(None, inside=True)


def _warns(message: str, *unless: Any) -> Verdict:
    return Verdict(WARNING, message, ({}, *unless))


def _blocks(message: str, *unless: Any) -> Verdict:
    return Verdict(BLOCKING, message, ({}, *unless))


_SCHEDULER: Final = "only a scheduler reads this; the pod runs on this node anyway"
_ACCOUNT: Final = "service accounts are not supported; the containers get no token"
_SECURITY: Final = "the container would run with other privileges than requested"
_HOOK: Final = "the kubelet does not run such hooks"
_VOLUME: Final = "this volume type is not supported yet"
_REFERENCE: Final = "values from other objects are not supported yet, only plain values and the pod's own fields"
_REQUEST: Final = "disk space is not reserved yet"
_OF_POD: Final = "at pod level, only cpu, memory and huge pages are supported so far"
_RESTART: Final = "containers follow their pod's restartPolicy; only a sidecar may have its own: Always"
_RESOURCE: Final = "only limits of cpu, memory, huge pages and device plugin resources are supported so far"

_TOP: Final = {
    "apiVersion": HONOURED,
    "kind": HONOURED,
    "metadata": HONOURED,
    "metadata.finalizers": _warns("deletion does not wait for finalizers"),
    "metadata.annotations.container.apparmor.security.beta.kubernetes.io/*": _blocks(
        "only securityContext.appArmorProfile is supported", "runtime/default"
    ),
    "spec": HONOURED,
}

_POD: Final = {
    "affinity": HONOURED,
    "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution": _warns(_SCHEDULER),
    "affinity.podAffinity": _warns(_SCHEDULER),
    "affinity.podAntiAffinity": _warns(_SCHEDULER),
    "nodeSelector": HONOURED,
    "nodeName": _warns(_SCHEDULER),
    "tolerations": _warns(_SCHEDULER),
    "topologySpreadConstraints": _warns(_SCHEDULER),
    "schedulerName": _warns(_SCHEDULER),
    "schedulingGates": _warns(_SCHEDULER),
    "schedulingGroup": _warns(_SCHEDULER),
    "overhead": HONOURED,
    "priority": _warns("pod priorities are not supported yet"),
    "priorityClassName": _warns("pod priorities are not supported yet"),
    "preemptionPolicy": _warns("no pod is preempted in favour of another", "PreemptLowerPriority"),
    "evictionResponders": _warns("eviction responders are not asked"),
    "readinessGates": _warns("a condition counts as True unless the annotation chronolet/conditions sets it"),
    "serviceAccountName": _warns(_ACCOUNT, "default"),
    "serviceAccount": _warns(_ACCOUNT, "default"),
    "automountServiceAccountToken": _warns(_ACCOUNT, False),
    "imagePullSecrets": HONOURED,
    "enableServiceLinks": HONOURED,  # there are no services, so there are never variables for them
    "restartPolicy": HONOURED,
    "terminationGracePeriodSeconds": HONOURED,
    "containers": HONOURED,
    "initContainers": HONOURED,
    "ephemeralContainers": HONOURED,
    "ephemeralContainers.targetContainerName": HONOURED,
    "activeDeadlineSeconds": HONOURED,
    # Without a cluster DNS, all values but None, including the default ClusterFirst, mean the node's own resolver.
    "dnsPolicy": HONOURED,
    "dnsConfig": HONOURED,
    "hostAliases": HONOURED,
    # There is no cluster domain: a subdomain's name ends with `svc`.
    "hostname": HONOURED,
    "hostnameOverride": HONOURED,
    "subdomain": HONOURED,
    "setHostnameAsFQDN": HONOURED,
    "hostNetwork": HONOURED,
    "hostPID": HONOURED,
    "hostIPC": HONOURED,
    "hostUsers": _blocks("containers do not get their own user namespace yet", True),
    "shareProcessNamespace": HONOURED,
    "os": HONOURED,
    "os.name": _blocks("this is a Linux node", "linux"),
    "runtimeClassName": _blocks("only Docker's default runtime is supported so far"),
    "resourceClaims": _blocks("dynamic resource allocation is not supported"),
    "resources": HONOURED,
    "resources.requests": HONOURED,
    "resources.requests.cpu": HONOURED,
    "resources.requests.memory": HONOURED,
    "resources.requests.hugepages-*": HONOURED,
    "resources.requests.*": _blocks(_OF_POD),
    "resources.limits": HONOURED,
    "resources.limits.cpu": HONOURED,
    "resources.limits.memory": HONOURED,
    "resources.limits.hugepages-*": HONOURED,
    "resources.limits.*": _blocks(_OF_POD),
    "resources.claims": _blocks("dynamic resource allocation is not supported"),
    "securityContext": HONOURED,
    "securityContext.seLinuxOptions": HONOURED,
    "securityContext.runAsUser": HONOURED,
    "securityContext.runAsGroup": HONOURED,
    "securityContext.runAsNonRoot": HONOURED,
    "securityContext.supplementalGroups": HONOURED,
    "securityContext.fsGroup": HONOURED,
    "securityContext.fsGroupChangePolicy": HONOURED,
    "securityContext.sysctls": HONOURED,
    "securityContext.seccompProfile": HONOURED,
    "securityContext.appArmorProfile": HONOURED,
    "securityContext.supplementalGroupsPolicy": _blocks(_SECURITY, "Merge"),
    # Docker can only relabel whole volumes; chronolet does not use this, so files keep their labels.
    "securityContext.seLinuxChangePolicy": _warns("volumes are not relabelled"),
    "securityContext.windowsOptions": _warns("only Windows nodes read this"),
}

_CONTAINER: Final = {
    "name": HONOURED,
    "image": HONOURED,
    "command": HONOURED,
    "args": HONOURED,
    "workingDir": HONOURED,
    "imagePullPolicy": HONOURED,
    "ports": HONOURED,
    "env": HONOURED,
    "env.name": HONOURED,
    "env.value": HONOURED,
    "env.valueFrom": HONOURED,
    "env.valueFrom.configMapKeyRef": _blocks(_REFERENCE),
    "env.valueFrom.secretKeyRef": _blocks(_REFERENCE),
    "env.valueFrom.fileKeyRef": _blocks(_REFERENCE),
    "envFrom": _blocks(_REFERENCE),
    "resources": HONOURED,
    "resources.limits": HONOURED,
    "resources.limits.cpu": HONOURED,
    "resources.limits.memory": HONOURED,
    "resources.limits.ephemeral-storage": _warns("the amount of data that a container writes is not limited yet"),
    "resources.limits.*/*": HONOURED,
    "resources.limits.hugepages-*": HONOURED,
    "resources.limits.*": _blocks(_RESOURCE),
    "resources.requests": HONOURED,
    "resources.requests.cpu": HONOURED,
    "resources.requests.memory": HONOURED,
    "resources.requests.ephemeral-storage": _warns(_REQUEST),
    "resources.requests.*/*": HONOURED,
    "resources.requests.hugepages-*": HONOURED,
    "resources.requests.*": _blocks(_RESOURCE),
    "resources.claims": _blocks("dynamic resource allocation is not supported"),
    "resizePolicy": _warns("resources of a running container are not changed"),
    "restartPolicy": _blocks(_RESTART),
    "restartPolicyRules": _blocks(_RESTART),
    "volumeMounts": HONOURED,
    "volumeMounts.recursiveReadOnly": _blocks(
        "Docker cannot make mounts below a read-only mount read-only", "Disabled", "IfPossible"
    ),
    "volumeMounts.subPath": HONOURED,
    "volumeMounts.subPathExpr": HONOURED,
    "volumeMounts.mountPropagation": HONOURED,
    "volumeDevices": _blocks("raw block volumes are not supported"),
    "livenessProbe": HONOURED,
    "readinessProbe": HONOURED,
    "readinessProbe.terminationGracePeriodSeconds": _blocks("a failed readiness probe does not stop the container"),
    "startupProbe": HONOURED,
    "lifecycle": HONOURED,
    "lifecycle.postStart": HONOURED,
    "lifecycle.postStart.tcpSocket": _blocks(_HOOK),
    "lifecycle.preStop": HONOURED,
    "lifecycle.preStop.tcpSocket": _blocks(_HOOK),
    "lifecycle.stopSignal": HONOURED,
    "terminationMessagePath": HONOURED,
    "terminationMessagePolicy": HONOURED,
    "securityContext": HONOURED,
    "securityContext.capabilities": HONOURED,
    "securityContext.privileged": HONOURED,
    "securityContext.seLinuxOptions": HONOURED,
    "securityContext.runAsUser": HONOURED,
    "securityContext.runAsGroup": HONOURED,
    "securityContext.runAsNonRoot": HONOURED,
    "securityContext.readOnlyRootFilesystem": HONOURED,
    "securityContext.allowPrivilegeEscalation": HONOURED,
    "securityContext.seccompProfile": HONOURED,
    "securityContext.appArmorProfile": HONOURED,
    "securityContext.procMount": _blocks(_SECURITY, "Default"),
    "securityContext.windowsOptions": _warns("only Windows nodes read this"),
    "stdin": HONOURED,
    "stdinOnce": HONOURED,
    "tty": HONOURED,
}

_VOLUMES: Final = {
    "": HONOURED,
    "*": Verdict(BLOCKING, _VOLUME),
    "name": HONOURED,
    "emptyDir": HONOURED,
    "emptyDir.medium": _blocks("only the node's disk and memory are supported", "Memory"),
    "emptyDir.sizeLimit": _warns("the size of a volume on disk is not limited yet"),
    "downwardAPI": HONOURED,
    "hostPath": HONOURED,
    "hostPath.type": HONOURED,
}


def _under(prefix: str, table: dict[str, Verdict]) -> dict[str, Verdict]:
    return {f"{prefix}.{path}" if path else prefix: verdict for path, verdict in table.items()}


TABLE: Final[dict[str, Verdict]] = {
    **_TOP,
    **_under("spec", _POD),
    **_under("spec.containers", _CONTAINER),
    **_under("spec.initContainers", {**_CONTAINER, "restartPolicy": _blocks(_RESTART, "Always")}),
    **_under("spec.ephemeralContainers", _CONTAINER),
    **_under("spec.volumes", _VOLUMES),
}
