"""The settings for pod admission and for starting pods.

Input: none. Output: part of the settings table. Next: `table`. Source: cmd/kubelet/app/options,
pkg/kubelet/sysctl/allowlist.go (NewAllowlist), cmd/kubelet/app/options/options.go (ValidateKubeletFlags).
"""

from __future__ import annotations

import re
from typing import Any

from chronolet.node.settings.setting import Setting
from chronolet.node.settings.values import SettingsError, number, one_of, pairs
from chronolet.rules.names import names
from chronolet.rules.security import dotted, sysctl_namespace

_PATTERN = re.compile(r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*(\.?\*)?")


def node_labels(what: str, value: Any) -> dict[str, str]:
    """Parse labels from comma-separated `key=value` pairs or a map. A value may be empty."""
    found = value if isinstance(value, dict) else pairs(what, str(value), "=")
    for key, label in found.items():
        for wrong in (names.qualified_problem(str(key)), names.label_value_problem(str(label))):
            if wrong:
                raise SettingsError(f"{what}: {key}={label}: {wrong}")
    return {str(key): str(label) for key, label in found.items()}


def unsafe_sysctls(what: str, value: Any) -> tuple[str, ...]:
    """Parse names of namespaced kernel parameters, or name prefixes that end in `*`."""
    found = value if isinstance(value, list) else str(value).split(",")
    patterns = tuple(dotted(str(one).strip()) for one in found if str(one).strip())
    for one in patterns:
        if not _PATTERN.fullmatch(one):
            raise SettingsError(
                f"{what}: found {one!r}, expected a kernel parameter's name such as net.core.somaxconn, or a prefix "
                "followed by *"
            )
        if not sysctl_namespace(one.removesuffix("*")):
            raise SettingsError(
                f"{what}: {one!r} is not known to belong to a pod's own namespaces, expected one of kernel.shm*, "
                "kernel.msg*, kernel.sem, fs.mqueue.*, net.*"
            )
    return patterns


ADMISSION_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "node_labels",
        "--node-labels",
        "CHRONOLET_NODE_LABELS",
        "node labels as comma-separated key=value, in addition to kubernetes.io/hostname, os and arch [default: none]",
        node_labels,
        metavar="LABELS",
    ),
    Setting(
        "node_affinity",
        "--node-affinity",
        "CHRONOLET_NODE_AFFINITY",
        "treatment of a pod whose nodeSelector or required node affinity does not match: warn (it runs) or enforce "
        "(it is rejected, as by the kubelet) [default: warn]",
        one_of("warn", "enforce"),
        metavar="WORD",
    ),
    Setting(
        "allowed_unsafe_sysctls",
        "--allowed-unsafe-sysctls",
        "CHRONOLET_ALLOWED_UNSAFE_SYSCTLS",
        "kernel parameters that pods may set in addition to the safe ones, comma-separated; a trailing * matches any "
        "suffix [default: none]",
        unsafe_sysctls,
        "allowedUnsafeSysctls",
        "NAMES",
    ),
    Setting(
        "max_parallel_starts",
        "--max-parallel-starts",
        "CHRONOLET_MAX_PARALLEL_STARTS",
        "maximum number of concurrent sandbox and container starts; lowered while the engine is measured to handle "
        "fewer [default: 32]",
        number(1, 1_000),
        metavar="NUMBER",
    ),
)
