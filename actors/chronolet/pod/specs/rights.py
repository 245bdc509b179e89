"""Translates a container's security context into the runtime's user and security options.

Input: a container's security context, its image's user, the host. Output: `GrantedRights`; `ConfigRefusal`, `Refusal`.
Next: `containers`. Source: pkg/kubelet/kuberuntime/security_context_linux.go, dockershim's security_context.go and
helpers_linux.go (getSeccompSecurityOpts).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from chronolet.ports.machine.host import Host
from chronolet.ports.runtime.runtime import Refusal
from chronolet.rules import security
from chronolet_schemas.podspec import Container, Pod


class ConfigRefusal(Exception):  # noqa: N818 - an answer that its caller expects
    """The container's configuration cannot be applied; the message is one line in the kubelet's wording."""


class GrantedRights(msgspec.Struct, frozen=True, kw_only=True):
    """A container's rights, with the user and the security options resolved on this host."""

    rights: security.Rights = security.Rights()
    user: str = ""
    options: Sequence[str] = ()


def granted_rights(pod: Pod, container: Container, host: Host, image: Callable[[], str]) -> GrantedRights:
    """Return the container's rights on this host. `image`: asks the runtime for the image's user; called only when
    needed.

    Raises ConfigRefusal, and Refusal if a seccomp profile cannot be loaded.
    """
    requested = security.rights(pod, container)
    needed = requested.user is None and (requested.non_root or requested.group is not None)
    user = security.image_user(image()) if needed else security.ImageUser(0)
    if refused := security.breaks_non_root(requested, user, pod, container.name):
        raise ConfigRefusal(refused)
    return GrantedRights(
        rights=requested, user=security.user_of(requested, user), options=tuple(_options(requested, host))
    )


def lacking(host: Host) -> str:
    """Return what to append to an error text: the capabilities that a privileged container lacks on this host; empty if
    it lacks none.
    """
    missing = host.missing_capabilities()
    if not missing:
        return ""
    names = ", ".join(f"CAP_{name}" for name in missing)
    return f"; a privileged container needs every capability, and this node cannot give {names}"


def _options(requested: security.Rights, host: Host) -> Sequence[str]:
    found = ["no-new-privileges"] if requested.no_new_privileges else []
    match requested.seccomp.type:
        case "Unconfined":
            found.append("seccomp=unconfined")
        case "Localhost":
            found.append(f"seccomp={_profile(requested.seccomp.localhost_profile, host)}")
        case _:
            pass
    if requested.app_armor.type in ("RuntimeDefault", "Localhost") and not host.enforces_app_armor():
        raise ConfigRefusal("Cannot enforce AppArmor: AppArmor is not enabled on the host")
    match requested.app_armor.type:
        case "Unconfined":
            found.append("apparmor=unconfined")
        case "Localhost":
            found.append(f"apparmor={requested.app_armor.localhost_profile}")
        case _:
            pass
    labels = requested.se_linux
    pairs = (("user", labels.user), ("role", labels.role), ("type", labels.type), ("level", labels.level))
    return [*found, *(f"label={name}:{value}" for name, value in pairs if value)]


def _profile(name: str, host: Host) -> str:
    """Return the seccomp profile's JSON. Raises Refusal, which becomes a CreateContainerError, because with a kubelet
    it is the runtime that reads the file.
    """
    try:
        return host.seccomp_profile(name)
    except OSError as error:
        problem = f"cannot load seccomp profile {name!r}: {error.filename}: {error.strerror}"
        raise Refusal("failed", problem) from error
    except ValueError as error:
        raise Refusal("failed", f"cannot load seccomp profile {name!r}: {error}") from error
