"""Accepts a new pod or a changed spec, and blocks the parts of it that may not run. Pure.

Input: a manifest. Output: `pod.SpecAccepted`, `pod.SandboxBlocked`, `pod.ContainerBlocked`. Next: `record`, `plan`.
Source: pkg/kubelet/kubelet_pods.go and kuberuntime_container.go, where a container that cannot be configured waits with
CreateContainerConfigError while its pod's sandbox runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.pod.admission.hashes import container_hashes, sandbox_hash
from chronolet.rules.validation import honoured, size_findings
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Finding, Pod

_SANDBOX_MAY_RUN = (
    *honoured.CONTAINERS.values(),
    "spec.volumes",
    "spec.resources",
    "spec.resourceClaims",
    "spec.activeDeadlineSeconds",
)
"""Fields that do not affect the sandbox: it may run even if they block containers. Any other field that is not honoured
(host namespaces, sysctls, DNS, ...) would make the sandbox itself differ from its spec."""


def accepted(*, uid: str, source: str, digest: str, manifest: Pod, now: int) -> Sequence[Event]:
    """Return the events that begin the life of the pod `uid` or change its spec."""
    return (
        pod.SpecAccepted(
            pod=manifest.key,
            uid=uid,
            source=source,
            digest=digest,
            manifest=manifest,
            accepted_at=now,
            sandbox_hash=sandbox_hash(manifest),
            container_hashes=container_hashes(manifest),
        ),
        *blocked(uid, manifest),
    )


def blocked(uid: str, manifest: Pod) -> Iterator[Event]:
    """Yield the events that block the pod's sandbox or containers because of findings in the manifest."""
    findings = (*honoured.findings(manifest), *size_findings.findings(manifest))
    whole = _sandbox_blocker(findings)
    if whole is not None:
        yield pod.SandboxBlocked(pod=manifest.key, uid=uid, message=str(whole))
    for container, finding in honoured.blockers(manifest, findings):
        yield pod.ContainerBlocked(
            pod=manifest.key,
            uid=uid,
            container=container,
            attempt=0,
            reason="CreateContainerConfigError",
            message=str(finding),
        )


def _sandbox_blocker(findings: Sequence[Finding]) -> Finding | None:
    blocking = (one for one in findings if one.severity == honoured.BLOCKING)
    return next((one for one in blocking if not one.path.startswith(_SANDBOX_MAY_RUN)), None)
