"""The expected result of each manifest of the corpus, written by hand.

Input: nothing. Output: EXPECTED, file -> `Refused` or `Accepted`. Next: `test_reading` compares it with the results of
the readers, `test_running` compares it with those of a real node, and `page` prints it. When a field becomes honoured,
its entries here must change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

CONFIG_ERROR = "CreateContainerConfigError"


class ContainerOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a container once its pod has settled, as its status shows it: the reason why it waits or ended, and
    a part of the message. `exit_code` is that of the last run that ended; None if no run has ended.
    """

    reason: str
    message: str = ""
    exit_code: int | None = None

    def __str__(self) -> str:
        code = f" ({self.exit_code})" if self.exit_code is not None else ""
        return f"`{self.reason}`{code}{f': {self.message}' if self.message else ''}"


RUNS: Final = ContainerOutcome(reason="running")
RESTARTED: Final = ContainerOutcome(reason="running", message="restarted now and then")


def matches(status: Mapping[str, Any], expected: ContainerOutcome) -> bool:
    """Return whether a v1 ContainerStatus has this outcome."""
    state = status.get("state", {})
    if expected == RUNS:
        return "running" in state and status["restartCount"] == 0
    if expected == RESTARTED:
        return "running" in state or state.get("waiting", {}).get("reason") == "CrashLoopBackOff"
    part = state.get("waiting") or state.get("terminated") or {}
    ended = state.get("terminated") or status.get("lastState", {}).get("terminated") or {}
    if expected.exit_code is not None and ended.get("exitCode") != expected.exit_code:
        return False
    return bool(
        part.get("reason") == expected.reason
        and expected.message in f"{part.get('message', '')} {ended.get('message')}"
    )


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest is refused. `problems` maps the path of each problem to the gist of its message."""

    problems: Mapping[str, str]


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest is accepted. `warns`, `blocks`: the paths of its findings. `ends`: the outcomes of containers by
    name; `else_`: the outcome of all other containers. `rejected`: the reason why the node does not admit the pod.
    `note`: an explanation for the page.
    """

    warns: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    ends: Mapping[str, ContainerOutcome] = {}
    else_: ContainerOutcome = RUNS
    rejected: str = ""
    note: str = ""

    def outcome_of(self, container: str) -> ContainerOutcome:
        """Return the container's expected outcome. If the pod has blocking findings, a container that would run waits
        with the reason CONFIG_ERROR instead.
        """
        found = self.ends.get(container, self.else_)
        return ContainerOutcome(reason=CONFIG_ERROR) if self.blocks and found == RUNS else found

    def summary(self) -> str:
        """Return a short text for the page."""
        if self.rejected:
            return f"is not let in: `{self.rejected}` ({self.note})"
        if self.blocks:
            return f"waits: `{CONFIG_ERROR}`"
        words = [f"`{name}`: {end}" for name, end in self.ends.items()]
        if self.else_ != RUNS:
            words.append(str(self.else_))
        text = "; ".join(words) or "runs"
        return f"{text} ({self.note})" if self.note else text


Expectation = Refused | Accepted


def _first(*fields: str) -> tuple[str, ...]:
    """Return the paths of these fields in the first container."""
    return tuple(f"spec.containers[0].{field}" for field in fields)


_PREFERRED: Final = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
_CAPITALS = "capital letters are not allowed"
_NO_PLUGIN: Final = Accepted(
    else_=ContainerOutcome(reason="WaitingForDevices"),
    note="until a device plugin registers; a kubelet leaves that to its scheduler",
)
_SECCOMP: Final = Accepted(
    else_=ContainerOutcome(reason="CreateContainerError", message="cannot load seccomp profile"),
    note="the profile is not on the test's machine",
)
_PROBED: Final = Accepted()
_FORGETS: Final = Accepted(else_=RESTARTED, note="its command begins to fail after 30 s")
_LITTLE_CPU: Final = "on a node with fewer processors than it requests: `OutOfcpu`; the test's has a thousand"

EXPECTED: Final[dict[str, Expectation]] = {
    # -- refused -------------------------------------------------------------------------------------------------------
    "play_kube_podWithoutAName.yaml": Refused(
        problems={"metadata.name": "missing", "spec.containers[0].name": _CAPITALS}
    ),
    "play_kube_publishPortsEchoWithHostPortUDP.yaml": Refused(
        problems={"spec.containers[0].ports[0].protocol": "`udp`, expected `UDP`"}
    ),
    "play_kube_publishPortsPodWithoutPorts.yaml": Refused(
        problems={"spec.containers[0].imagePullPolicy": "`missing`, another tool's policy"}
    ),
    "play_kube_simpleWithoutPodPrefixYaml.yaml": Refused(problems={"spec.containers[0].name": _CAPITALS}),
    # -- devices and other extended resources --------------------------------------------------------------------------
    "example_pod_jax-non-privileged.yaml": _NO_PLUGIN,
    "demo_dsa-accel-config-demo-pod.yaml": _NO_PLUGIN,
    "demo_dsa-dpdk-dmadevtest-vfio.yaml": Accepted(
        blocks=("spec.volumes[0].emptyDir.medium",),
        rejected="OutOfhugepages-2Mi",
        note="the test's machine has no huge pages",
    ),
    "images_workload_pod.yaml": _NO_PLUGIN,
    "fuse-test.yml": Accepted(
        blocks=("metadata.annotations.container.apparmor.security.beta.kubernetes.io/test-fuse",),
    ),
    "pods_resource_extended-resource-pod.yaml": _NO_PLUGIN,
    "smarter-device-management-pod-k3s-test-xavier.yaml": Accepted(
        blocks=("spec.volumes[3].configMap",),
        warns=(
            "spec.nodeName",
            "spec.priorityClassName",
        ),
    ),
    # -- values and volumes from elsewhere -----------------------------------------------------------------------------
    "play_kube_secretPodYaml.yaml": Accepted(blocks=("spec.volumes[0].secret",)),
    "play_kube_secretPodYamlTwo.yaml": Accepted(blocks=tuple(f"spec.volumes[{index}].secret" for index in range(3))),
    "play_kube_signalTest.yaml": Accepted(blocks=("spec.volumes[0].persistentVolumeClaim",)),
    "pods_storage_pv-pod.yaml": Accepted(blocks=("spec.volumes[0].persistentVolumeClaim",)),
    "pods_inject_secret-pod.yaml": Accepted(blocks=("spec.volumes[0].secret",)),
    "pods_pod-configmap-volume.yaml": Accepted(blocks=("spec.volumes[0].configMap",)),
    "admin_logging_two-files-counter-pod-agent-sidecar.yaml": Accepted(blocks=("spec.volumes[1].configMap",)),
    "pods_pod-projected-svc-token.yaml": Accepted(
        blocks=("spec.volumes[0].projected",), warns=("spec.serviceAccountName",)
    ),
    "_archived_storage_rethinkdb_admin-pod.yaml": Accepted(),
    "pods_inject_dapi-envars-container.yaml": Accepted(),
    "pods_inject_dapi-envars-pod.yaml": Accepted(),
    "pods_inject_pod-multiple-secret-env-variable.yaml": Accepted(
        blocks=_first("env[0].valueFrom.secretKeyRef", "env[1].valueFrom.secretKeyRef")
    ),
    # -- security contexts ---------------------------------------------------------------------------------------------
    "play_kube_podWithHostIPCDefined.yaml": Accepted(else_=ContainerOutcome(reason="Completed", exit_code=0)),
    "play_kube_selinuxLabelPodYaml.yaml": Accepted(),
    "pods_security_hello-apparmor.yaml": Accepted(
        blocks=("metadata.annotations.container.apparmor.security.beta.kubernetes.io/hello",)
    ),
    "pods_security_seccomp_ga_audit-pod.yaml": _SECCOMP,
    "pods_security_seccomp_ga_fine-pod.yaml": _SECCOMP,
    "pods_security_seccomp_ga_violation-pod.yaml": _SECCOMP,
    # -- init containers and hooks -------------------------------------------------------------------------------------
    "pods_init-containers.yaml": Accepted(
        ends={
            "install": ContainerOutcome(reason="CrashLoopBackOff", message="back-off", exit_code=1),
            "nginx": ContainerOutcome(reason="PodInitializing"),
        },
        note="its page is in a network that the test's machine does not reach",
    ),
    "pods_lifecycle-events.yaml": Accepted(),
    # -- probes --------------------------------------------------------------------------------------------------------
    "pods_probe_exec-liveness.yaml": _FORGETS,
    "pods_probe_http-liveness.yaml": _PROBED,
    "pods_probe_pod-with-http-healthcheck.yaml": _PROBED,
    "pods_probe_pod-with-tcp-socket-healthcheck.yaml": _PROBED,
    "pods_probe_tcp-liveness-readiness.yaml": _PROBED,
    "pods_probe_grpc-liveness.yaml": Accepted(
        else_=ContainerOutcome(reason="CrashLoopBackOff", message="no such file or directory", exit_code=127),
    ),
    # -- fields for clusters -------------------------------------------------------------------------------------------
    "pods_pod-nginx-preferred-affinity.yaml": Accepted(warns=(_PREFERRED,)),
    "pods_pod-with-node-affinity.yaml": Accepted(warns=(_PREFERRED,)),
    "pods_pod-nginx.yaml": Accepted(),
    "pods_pod-with-toleration.yaml": Accepted(warns=("spec.tolerations",)),
    "pods_topology-spread-constraints_two-constraints.yaml": Accepted(warns=("spec.topologySpreadConstraints",)),
    "pods_private-reg-pod.yaml": Accepted(note="its Secret is missing, but the image is present"),
    # -- plain pods ----------------------------------------------------------------------------------------------------
    "admin_dns_busybox.yaml": Accepted(),
    "admin_resource_cpu-defaults-pod.yaml": Accepted(),
    "admin_resource_memory-defaults-pod.yaml": Accepted(),
    "pods_inject_envars.yaml": Accepted(),
    "pods_qos_qos-pod.yaml": Accepted(),
    "pods_qos_qos-pod-3.yaml": Accepted(),
    "pods_qos_qos-pod-4.yaml": Accepted(),
    "pods_resource_cpu-request-limit-2.yaml": Accepted(note=_LITTLE_CPU),
    "pods_simple-pod.yaml": Accepted(),
}
