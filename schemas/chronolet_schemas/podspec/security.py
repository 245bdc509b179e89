"""Security contexts of pods and containers. Source: PodSecurityContext, SecurityContext in core/v1/types.go."""

from typing import Literal

from chronolet_schemas.podspec.base import Int64, Part


class SELinuxOptions(Part, frozen=True, kw_only=True):
    """The SELinux label of a process."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class WindowsOptions(Part, frozen=True, kw_only=True):
    """Options for Windows nodes only."""

    gmsa_credential_spec_name: str = ""
    gmsa_credential_spec: str = ""
    run_as_user_name: str = ""
    host_process: bool | None = None


class Profile(Part, frozen=True, kw_only=True):
    """A seccomp or AppArmor profile; `localhost_profile` names one on the node."""

    type: Literal["Localhost", "RuntimeDefault", "Unconfined"] | None = None
    localhost_profile: str = ""


class Capabilities(Part, frozen=True, kw_only=True):
    """Linux capabilities to add to and drop from the runtime's default set."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class Sysctl(Part, frozen=True, kw_only=True):
    """One kernel parameter of the pod's namespaces."""

    name: str = ""
    value: str = ""


class PodSecurityContext(Part, frozen=True, kw_only=True):
    """Security settings for all containers of a pod, unless a container overrides them."""

    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: tuple[Int64, ...] = ()
    supplemental_groups_policy: Literal["Merge", "Strict"] | None = None
    fs_group: Int64 | None = None
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = None
    sysctls: tuple[Sysctl, ...] = ()
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None
    se_linux_change_policy: Literal["MountOption", "Recursive"] | None = None


class SecurityContext(Part, frozen=True, kw_only=True):
    """Security settings of one container."""

    capabilities: Capabilities | None = None
    privileged: bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: Literal["Default", "Unmasked"] | None = None
    seccomp_profile: Profile | None = None
    app_armor_profile: Profile | None = None
