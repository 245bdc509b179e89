"""Resolves a container's security context against its pod's, and applies the kubelet's checks. Pure.

Input: a Pod, one of its containers, the image's user. Output: `Rights`, or the kubelet's refusal message. Next: the
pod's workers. Source: pkg/securitycontext/util.go,
pkg/kubelet/kuberuntime/security_context.go, pkg/kubelet/sysctl/allowlist.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from chronolet_schemas.podspec import Container, Pod, PodSecurityContext, Profile, SecurityContext, SELinuxOptions

_SAFE_OF_IPC = frozenset({"kernel.shm_rmid_forced"})
_SAFE_OF_NETWORK = frozenset(
    {
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    }
)


class Rights(msgspec.Struct, frozen=True, kw_only=True):
    """The effective security settings of one container. If `user` or `group` is None, the image's is used."""

    user: int | None = None
    group: int | None = None
    non_root: bool = False
    groups: Sequence[int] = ()
    privileged: bool = False
    add: Sequence[str] = ()
    drop: Sequence[str] = ()
    read_only_root: bool = False
    no_new_privileges: bool = False
    seccomp: Profile = Profile()
    app_armor: Profile = Profile()
    se_linux: SELinuxOptions = SELinuxOptions()


class ImageUser(msgspec.Struct, frozen=True):
    """The user that an image runs as: a uid, or a name whose uid only the image defines (then `uid` is None)."""

    uid: int | None
    name: str = ""


def image_user(text: str) -> ImageUser:
    """Parse an image's `USER`: `uid`, `uid:gid` or `name`; empty means root."""
    user = text.partition(":")[0]
    if not user:
        return ImageUser(0)
    return ImageUser(int(user)) if user.isascii() and user.isdigit() else ImageUser(None, user)


def rights(pod: Pod, container: Container) -> Rights:
    """Return the container's effective settings: its own values take precedence over the pod's."""
    whole = pod.spec.security_context or PodSecurityContext()
    own = container.security_context or SecurityContext()
    capabilities = own.capabilities
    return Rights(
        user=own.run_as_user if own.run_as_user is not None else whole.run_as_user,
        group=own.run_as_group if own.run_as_group is not None else whole.run_as_group,
        non_root=bool(own.run_as_non_root if own.run_as_non_root is not None else whole.run_as_non_root),
        groups=(*whole.supplemental_groups, *((whole.fs_group,) if whole.fs_group is not None else ())),
        privileged=bool(own.privileged),
        add=capabilities.add if capabilities else (),
        drop=capabilities.drop if capabilities else (),
        read_only_root=bool(own.read_only_root_filesystem),
        no_new_privileges=own.allow_privilege_escalation is False,
        seccomp=own.seccomp_profile or whole.seccomp_profile or Profile(),
        app_armor=own.app_armor_profile or whole.app_armor_profile or Profile(),
        se_linux=own.se_linux_options or whole.se_linux_options or SELinuxOptions(),
    )


def breaks_non_root(own: Rights, image: ImageUser, pod: Pod, container: str) -> str:
    """Return the kubelet's message if runAsNonRoot forbids starting the container; empty if it may start."""
    if not own.non_root:
        return ""
    where = f'(pod: "{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})", container: {container})'
    if own.user is not None:
        return f"container's runAsUser breaks non-root policy {where}" if own.user == 0 else ""
    if image.uid is None:
        return (
            f"container has runAsNonRoot and image has non-numeric user ({image.name}), cannot verify user is non-root "
            f"{where}"
        )
    return f"container has runAsNonRoot and image will run as root {where}" if image.uid == 0 else ""


def user_of(own: Rights, image: ImageUser) -> str:
    """Return the user in the runtime's format, `uid[:gid]`; empty for the image's user. If only a group is set, it is
    combined with the image's user.
    """
    if own.user is None and own.group is None:
        return ""
    user = str(own.user) if own.user is not None else image.name or str(image.uid)
    return user if own.group is None else f"{user}:{own.group}"


def forbidden_sysctl(pod: Pod, allowed_unsafe: Sequence[str] = ()) -> str:
    """Return the kubelet's message for the pod's first sysctl that is not allowed; empty if all are allowed.

    `allowed_unsafe`: names, or name prefixes that end in `*`, that the node's administrator allows.
    """
    context = pod.spec.security_context or PodSecurityContext()
    for sysctl in context.sysctls:
        name = dotted(sysctl.name)
        if name not in _SAFE_OF_NETWORK | _SAFE_OF_IPC and not any(_matches(name, one) for one in allowed_unsafe):
            return f'forbidden sysctl: "{name}" not allowlisted'
        namespace = sysctl_namespace(name)
        if namespace == "net" and pod.spec.host_network:
            return f'forbidden sysctl: "{name}" not allowed with host net enabled'
        if namespace == "ipc" and pod.spec.host_ipc:
            return f'forbidden sysctl: "{name}" not allowed with host ipc enabled'
    return ""


def dotted(name: str) -> str:
    """Return a kernel parameter's name with dots instead of slashes, as the runtime expects it."""
    return name.replace("/", ".")


def sysctl_namespace(name: str) -> Literal["net", "ipc", ""]:
    """Return the namespace of a kernel parameter, given its name or a prefix of it; empty if no known namespace has it.

    Source: k8s.io/component-helpers/node/util/sysctl/namespace.go.
    """
    if name.startswith("net."):
        return "net"
    if name == "kernel.sem" or name.startswith(("kernel.shm", "kernel.msg", "fs.mqueue.")):
        return "ipc"
    return ""


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
