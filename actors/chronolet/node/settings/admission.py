"""The settings by which a node takes pods, and starts them.

Comes in: nothing. Goes out: their part of the table. Next: `settings`. Source: cmd/kubelet/app/options,
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
    """Labels by key, from `key=value` pairs by commas or a map. A value may be empty."""
    found = value if isinstance(value, dict) else pairs(what, str(value), "=")
    for key, label in found.items():
        for wrong in (names.qualified_problem(str(key)), names.label_value_problem(str(label))):
            if wrong:
                raise SettingsError(f"{what}: {key}={label}: {wrong}")
    return {str(key): str(label) for key, label in found.items()}


def unsafe_sysctls(what: str, value: Any) -> tuple[str, ...]:
    """Names of kernel parameters, or beginnings of names that end in `*`. Each belongs to a pod's namespaces."""
    found = value if isinstance(value, list) else str(value).split(",")
    patterns = tuple(dotted(str(one).strip()) for one in found if str(one).strip())
    for one in patterns:
        if not _PATTERN.fullmatch(one):
            raise SettingsError(
                f"{what}: found {one!r}, expected a kernel parameter's name such as net.core.somaxconn, or the "
                "beginning of one and *"
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
        "labels of the node, as key=value by commas, beside kubernetes.io/hostname, os and arch [default: none]",
        node_labels,
        metavar="LABELS",
    ),
    Setting(
        "node_affinity",
        "--node-affinity",
        "CHRONOLET_NODE_AFFINITY",
        "what becomes of a pod whose nodeSelector or required node affinity does not match: warn (it runs) or enforce "
        "(it is rejected, as by a kubelet) [default: warn]",
        one_of("warn", "enforce"),
        metavar="WORD",
    ),
    Setting(
        "allowed_unsafe_sysctls",
        "--allowed-unsafe-sysctls",
        "CHRONOLET_ALLOWED_UNSAFE_SYSCTLS",
        "kernel parameters that pods may set beside the safe ones, by commas; * at the end for all that begin so "
        "[default: none]",
        unsafe_sysctls,
        "allowedUnsafeSysctls",
        "NAMES",
    ),
    Setting(
        "max_parallel_starts",
        "--max-parallel-starts",
        "CHRONOLET_MAX_PARALLEL_STARTS",
        "the most sandboxes and containers to start at once; fewer where the engine is measured to carry less "
        "[default: 32]",
        number(1, 1_000),
        metavar="NUMBER",
    ),
)
