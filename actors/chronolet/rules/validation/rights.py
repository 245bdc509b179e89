"""Validates security contexts as the API server does. Pure.

Input: a defaulted pod's spec, its path. Output: problems. Next: `pods`. Source:
ValidateSecurityContext, validatePodSpecSecurityContext, validateSysctls in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chronolet.rules.validation.problems import Problem, repeated, within
from chronolet_schemas.podspec import Container, PodSecurityContext, PodSpec, Profile, SecurityContext

LARGEST_ID = 2_147_483_647

_SYSCTL = re.compile(r"[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:[./][a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*")


def rights_problems(path: str, spec: PodSpec, containers: Sequence[tuple[str, Container]]) -> Iterator[Problem]:
    """Yield problems with the security contexts of the pod and its containers. `containers`: all containers, each with
    its path.
    """
    if spec.security_context is not None:
        yield from _pod(f"{path}.securityContext", spec.security_context)
    for here, container in containers:
        if container.security_context is not None:
            yield from _container(f"{here}.securityContext", container.security_context, spec)


def _pod(path: str, context: PodSecurityContext) -> Iterator[Problem]:
    yield from _ids(path, context)
    if context.fs_group is not None:
        yield from within(f"{path}.fsGroup", context.fs_group, 0, LARGEST_ID)
    for index, group in enumerate(context.supplemental_groups):
        yield from within(f"{path}.supplementalGroups[{index}]", group, 0, LARGEST_ID)
    for index, sysctl in enumerate(context.sysctls):
        if not _SYSCTL.fullmatch(sysctl.name):
            yield Problem(f"{path}.sysctls[{index}].name", f"{sysctl.name!r} is not a kernel parameter's name")
    yield from repeated(f"{path}.sysctls", "name", [sysctl.name for sysctl in context.sysctls])
    yield from _profiles(path, context)


def _container(path: str, context: SecurityContext, spec: PodSpec) -> Iterator[Problem]:
    yield from _ids(path, context)
    yield from _profiles(path, context)
    if context.proc_mount == "Unmasked" and spec.host_users is not False:
        yield Problem(f"{path}.procMount", "`hostUsers` must be false to use `Unmasked`")
    if context.allow_privilege_escalation is False:
        if context.privileged:
            yield Problem(path, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
        if context.capabilities is not None and "CAP_SYS_ADMIN" in context.capabilities.add:
            yield Problem(path, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")


def _ids(path: str, context: PodSecurityContext | SecurityContext) -> Iterator[Problem]:
    for field, value in (("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group)):
        if value is not None:
            yield from within(f"{path}.{field}", value, 0, LARGEST_ID)


def _profiles(path: str, context: PodSecurityContext | SecurityContext) -> Iterator[Problem]:
    for field, profile in (("seccompProfile", context.seccomp_profile), ("appArmorProfile", context.app_armor_profile)):
        if profile is not None:
            yield from _profile(f"{path}.{field}", profile, in_folder=field == "seccompProfile")


def _profile(path: str, profile: Profile, *, in_folder: bool) -> Iterator[Problem]:
    """Validate a profile: only type Localhost has a name; for seccomp, the name is a path relative to a folder on the
    node.
    """
    name = profile.localhost_profile
    if profile.type is None:
        yield Problem(f"{path}.type", "missing, expected Localhost, RuntimeDefault or Unconfined")
    elif profile.type != "Localhost" and name:
        yield Problem(f"{path}.localhostProfile", f"{name!r} can only be set with the type Localhost")
    elif profile.type == "Localhost" and not name:
        yield Problem(f"{path}.localhostProfile", "missing, expected a profile of the node")
    elif in_folder and (name.startswith("/") or ".." in name.split("/")):
        yield Problem(f"{path}.localhostProfile", f"{name!r} must be a relative path without '..'")
