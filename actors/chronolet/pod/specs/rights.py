"""A container's rights, as the runtime is asked for them, or why it may not have them.

Comes in: a container's security context, its image's user, the host. Goes out: `user` and security options;
`ConfigRefusal`, `Refusal`. Next: `containers`. Answers to pkg/kubelet/kuberuntime/security_context_linux.go,
dockershim's security_context.go and helpers_linux.go (getSeccompSecurityOpts).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from chronolet.ports.machine.host import Host
from chronolet.ports.runtime.runtime import Refusal
from chronolet.rules import security
from chronolet_schemas.podspec import Container, Pod


class ConfigRefusal(Exception):  # noqa: N818 - an answer that its caller expects
    """The container's configuration cannot be had; the message is the kubelet's, in one line."""


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The rights, and what of them only this host could tell."""

    rights: security.Rights = security.Rights()
    user: str = ""
    options: Sequence[str] = ()


def granted(pod: Pod, container: Container, host: Host, image: Callable[[], str]) -> Granted:
    """`image` asks the runtime for the image's user, which is not needed for most containers."""
    asked = security.rights(pod, container)
    needed = asked.user is None and (asked.non_root or asked.group is not None)
    user = security.image_user(image()) if needed else security.ImageUser(0)
    if refused := security.breaks_non_root(asked, user, pod, container.name):
        raise ConfigRefusal(refused)
    return Granted(rights=asked, user=security.user_of(asked, user), options=tuple(_options(asked, host)))


def lacking(host: Host) -> str:
    """What a privileged container lacks on this host, as the end of a sentence; empty if it lacks nothing."""
    missing = host.missing_capabilities()
    if not missing:
        return ""
    names = ", ".join(f"CAP_{name}" for name in missing)
    return f"; a privileged container needs every capability, and this node cannot give {names}"


def _options(asked: security.Rights, host: Host) -> Sequence[str]:
    found = ["no-new-privileges"] if asked.no_new_privileges else []
    match asked.seccomp.type:
        case "Unconfined":
            found.append("seccomp=unconfined")
        case "Localhost":
            found.append(f"seccomp={_profile(asked.seccomp.localhost_profile, host)}")
        case _:
            pass
    if asked.app_armor.type in ("RuntimeDefault", "Localhost") and not host.enforces_app_armor():
        raise ConfigRefusal("Cannot enforce AppArmor: AppArmor is not enabled on the host")
    match asked.app_armor.type:
        case "Unconfined":
            found.append("apparmor=unconfined")
        case "Localhost":
            found.append(f"apparmor={asked.app_armor.localhost_profile}")
        case _:
            pass
    labels = asked.se_linux
    pairs = (("user", labels.user), ("role", labels.role), ("type", labels.type), ("level", labels.level))
    return [*found, *(f"label={name}:{value}" for name, value in pairs if value)]


def _profile(name: str, host: Host) -> str:
    """Under a kubelet the runtime reads it: its refusal, a CreateContainerError."""
    try:
        return host.seccomp_profile(name)
    except OSError as error:
        said = f"cannot load seccomp profile {name!r}: {error.filename}: {error.strerror}"
        raise Refusal("failed", said) from error
    except ValueError as error:
        raise Refusal("failed", f"cannot load seccomp profile {name!r}: {error}") from error
