"""What becomes of each manifest of the corpus, as a person says it who knows Kubernetes and these files.

Input: nothing. Output: EXPECTED, file -> `Refused` or `Taken`. Next: `test_reading` holds the readers to it,
`test_running` a real node; `page` prints it. A field that becomes honoured changes its lines here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

CONFIG_ERROR = "CreateContainerConfigError"


class Says(msgspec.Struct, frozen=True, kw_only=True):
    """How a container stands once its pod has settled, in the words of its status: why it waits or how it ended, and
    a piece of the message. `exit_code` is that of the run that ended, None where none did.
    """

    reason: str
    message: str = ""
    exit_code: int | None = None

    def __str__(self) -> str:
        code = f" ({self.exit_code})" if self.exit_code is not None else ""
        return f"`{self.reason}`{code}{f': {self.message}' if self.message else ''}"


RUNS: Final = Says(reason="running")
RESTARTED: Final = Says(reason="running", message="restarted now and then")


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """No pod: each problem's path, with the gist of what is said there."""

    problems: Mapping[str, str]


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A pod. All that is reported of it, by path; and how each container stands, `else_` for those not named.
    `rejected`: the reason for which the node does not let it in.
    """

    warns: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    ends: Mapping[str, Says] = {}
    else_: Says = RUNS
    rejected: str = ""
    note: str = ""

    def end(self, container: str) -> Says:
        """How this container stands. What blocks it is named by its message."""
        found = self.ends.get(container, self.else_)
        return Says(reason=CONFIG_ERROR) if self.blocks and found == RUNS else found

    def summary(self) -> str:
        """In a few words, for people."""
        if self.rejected:
            return f"is not let in: `{self.rejected}` ({self.note})"
        if self.blocks:
            return f"waits: `{CONFIG_ERROR}`"
        words = [f"`{name}`: {end}" for name, end in self.ends.items()]
        if self.else_ != RUNS:
            words.append(str(self.else_))
        said = "; ".join(words) or "runs"
        return f"{said} ({self.note})" if self.note else said


Expectation = Refused | Taken


def _first(*fields: str) -> tuple[str, ...]:
    """Paths of fields of the first container."""
    return tuple(f"spec.containers[0].{field}" for field in fields)


_PREFERRED: Final = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
_CAPITALS = "capital letters are not allowed"
_NO_PLUGIN: Final = Taken(
    else_=Says(reason="WaitingForDevices"),
    note="until a device plugin registers; a kubelet leaves that to its scheduler",
)
_SECCOMP: Final = Taken(
    else_=Says(reason="CreateContainerError", message="cannot load seccomp profile"),
    note="the profile is not on the test's machine",
)
_PROBED: Final = Taken()
_FORGETS: Final = Taken(else_=RESTARTED, note="its command begins to fail after 30 s")
_LITTLE_CPU: Final = "on a node of fewer processors than it asks for: `OutOfcpu`; the test's has a thousand"

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
    # -- devices and what else is asked for by a resource's name -------------------------------------------------------
    "example_pod_jax-non-privileged.yaml": _NO_PLUGIN,
    "demo_dsa-accel-config-demo-pod.yaml": _NO_PLUGIN,
    "demo_dsa-dpdk-dmadevtest-vfio.yaml": Taken(
        blocks=("spec.volumes[0].emptyDir.medium",),
        rejected="OutOfhugepages-2Mi",
        note="the test's machine has no huge pages",
    ),
    "images_workload_pod.yaml": _NO_PLUGIN,
    "fuse-test.yml": Taken(
        blocks=("metadata.annotations.container.apparmor.security.beta.kubernetes.io/test-fuse",),
    ),
    "pods_resource_extended-resource-pod.yaml": _NO_PLUGIN,
    "smarter-device-management-pod-k3s-test-xavier.yaml": Taken(
        blocks=("spec.volumes[3].configMap",),
        warns=(
            "spec.nodeName",
            "spec.priorityClassName",
        ),
    ),
    # -- values and volumes from elsewhere -----------------------------------------------------------------------------
    "play_kube_secretPodYaml.yaml": Taken(blocks=("spec.volumes[0].secret",)),
    "play_kube_secretPodYamlTwo.yaml": Taken(blocks=tuple(f"spec.volumes[{index}].secret" for index in range(3))),
    "play_kube_signalTest.yaml": Taken(blocks=("spec.volumes[0].persistentVolumeClaim",)),
    "pods_storage_pv-pod.yaml": Taken(blocks=("spec.volumes[0].persistentVolumeClaim",)),
    "pods_inject_secret-pod.yaml": Taken(blocks=("spec.volumes[0].secret",)),
    "pods_pod-configmap-volume.yaml": Taken(blocks=("spec.volumes[0].configMap",)),
    "admin_logging_two-files-counter-pod-agent-sidecar.yaml": Taken(blocks=("spec.volumes[1].configMap",)),
    "pods_pod-projected-svc-token.yaml": Taken(
        blocks=("spec.volumes[0].projected",), warns=("spec.serviceAccountName",)
    ),
    "_archived_storage_rethinkdb_admin-pod.yaml": Taken(),
    "pods_inject_dapi-envars-container.yaml": Taken(),
    "pods_inject_dapi-envars-pod.yaml": Taken(),
    "pods_inject_pod-multiple-secret-env-variable.yaml": Taken(
        blocks=_first("env[0].valueFrom.secretKeyRef", "env[1].valueFrom.secretKeyRef")
    ),
    # -- rights --------------------------------------------------------------------------------------------------------
    "play_kube_podWithHostIPCDefined.yaml": Taken(else_=Says(reason="Completed", exit_code=0)),
    "play_kube_selinuxLabelPodYaml.yaml": Taken(),
    "pods_security_hello-apparmor.yaml": Taken(
        blocks=("metadata.annotations.container.apparmor.security.beta.kubernetes.io/hello",)
    ),
    "pods_security_seccomp_ga_audit-pod.yaml": _SECCOMP,
    "pods_security_seccomp_ga_fine-pod.yaml": _SECCOMP,
    "pods_security_seccomp_ga_violation-pod.yaml": _SECCOMP,
    # -- lives ---------------------------------------------------------------------------------------------------------
    "pods_init-containers.yaml": Taken(
        ends={
            "install": Says(reason="CrashLoopBackOff", message="back-off", exit_code=1),
            "nginx": Says(reason="PodInitializing"),
        },
        note="its page is in a network that the test's machine does not reach",
    ),
    "pods_lifecycle-events.yaml": Taken(),
    # -- probes --------------------------------------------------------------------------------------------------------
    "pods_probe_exec-liveness.yaml": _FORGETS,
    "pods_probe_http-liveness.yaml": _PROBED,
    "pods_probe_pod-with-http-healthcheck.yaml": _PROBED,
    "pods_probe_pod-with-tcp-socket-healthcheck.yaml": _PROBED,
    "pods_probe_tcp-liveness-readiness.yaml": _PROBED,
    "pods_probe_grpc-liveness.yaml": Taken(
        else_=Says(reason="CrashLoopBackOff", message="no such file or directory", exit_code=127),
    ),
    # -- what only a cluster reads -------------------------------------------------------------------------------------
    "pods_pod-nginx-preferred-affinity.yaml": Taken(warns=(_PREFERRED,)),
    "pods_pod-with-node-affinity.yaml": Taken(warns=(_PREFERRED,)),
    "pods_pod-nginx.yaml": Taken(),
    "pods_pod-with-toleration.yaml": Taken(warns=("spec.tolerations",)),
    "pods_topology-spread-constraints_two-constraints.yaml": Taken(warns=("spec.topologySpreadConstraints",)),
    "pods_private-reg-pod.yaml": Taken(note="its Secret is missing, which hinders nobody where the image is there"),
    # -- plain pods ----------------------------------------------------------------------------------------------------
    "admin_dns_busybox.yaml": Taken(),
    "admin_resource_cpu-defaults-pod.yaml": Taken(),
    "admin_resource_memory-defaults-pod.yaml": Taken(),
    "pods_inject_envars.yaml": Taken(),
    "pods_qos_qos-pod.yaml": Taken(),
    "pods_qos_qos-pod-3.yaml": Taken(),
    "pods_qos_qos-pod-4.yaml": Taken(),
    "pods_resource_cpu-request-limit-2.yaml": Taken(note=_LITTLE_CPU),
    "pods_simple-pod.yaml": Taken(),
}
