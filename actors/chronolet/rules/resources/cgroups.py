"""The kernel's numbers for processors, a cgroup with the values that it should have, and how it is named. Pure.

Input: thousandths of a processor, a path in the kubelet's words (`kubepods`, `burstable`, `pod<uid>`). Goes out:
shares, weights, quotas; names for both drivers. Next: `qos` makes a tree of them, `pod` containers, adapters files.
Source: pkg/kubelet/cm/helpers_linux.go, cgroup_manager_linux.go.
"""

from __future__ import annotations

import msgspec

LEAST_SHARES, MOST_SHARES = 2, 262_144
_SHARES_OF_A_CPU = 1024
_LEAST_QUOTA_MICROSECONDS = 1_000  # what the kernel takes at least
_MOST_WEIGHT = 10_000
QUOTA_PERIOD_MICROSECONDS = 100_000
UNLIMITED = -1
"""A limit that is none, as v1 writes it."""

Path = tuple[str, ...]


def shares(cpu_milli: int) -> int:
    """The weight of a request on v1."""
    return max(LEAST_SHARES, min(cpu_milli * _SHARES_OF_A_CPU // 1000, MOST_SHARES))


def quota(cpu_milli: int, period_us: int = QUOTA_PERIOD_MICROSECONDS) -> int:
    """Microseconds of processor time in each period; 0 for no limit."""
    return max(cpu_milli * period_us // 1000, _LEAST_QUOTA_MICROSECONDS) if cpu_milli else 0


def weight(cpu_shares: int) -> int:
    """v1's shares as v2's weight."""
    return 1 + (cpu_shares - LEAST_SHARES) * (_MOST_WEIGHT - 1) // (MOST_SHARES - LEAST_SHARES)


def shares_of_weight(cpu_weight: int) -> int:
    """And back."""
    return LEAST_SHARES + (cpu_weight - 1) * (MOST_SHARES - LEAST_SHARES) // (_MOST_WEIGHT - 1)


class Values(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one cgroup should have. None: the kernel's own default, which is no limit and no guarantee.

    `memory_min_bytes`, `memory_low_bytes` and `memory_high_bytes` are v2's. `huge_pages` are (page size, limit) in
    bytes.
    """

    cpu_shares: int | None = None
    cpu_quota_us: int | None = None
    cpu_period_us: int | None = None
    memory_limit_bytes: int | None = None
    memory_min_bytes: int | None = None
    memory_low_bytes: int | None = None
    memory_high_bytes: int | None = None
    pids: int | None = None
    huge_pages: tuple[tuple[int, int], ...] = ()


class Cgroup(msgspec.Struct, frozen=True, kw_only=True):
    """One cgroup by its path, with the values that it should have.

    That of a container, whose id ends the path, is the runtime's: it is given no more than `values` says, and not made.
    """

    path: Path
    values: Values = Values()
    is_containers: bool = False


def pod_name(uid: str) -> str:
    """The last part of a pod's path."""
    return f"pod{uid}"


def uid_of(name: str) -> str | None:
    """The uid that a name of either driver stands for, None if it is no pod's."""
    is_slice = name.endswith(".slice")
    last = name.removesuffix(".slice").rpartition("-")[2] if is_slice else name
    uid = last.removeprefix("pod")
    if uid in (last, ""):
        return None
    return uid.replace("_", "-") if is_slice else uid


def folder(path: Path, driver: str) -> str:
    """Where the cgroup is below a hierarchy's root."""
    if driver != "systemd":
        return "/".join(path)
    return "/".join(unit(path[: depth + 1]) for depth in range(len(path)))


def container_folder(path: Path, driver: str) -> str:
    """The same for a container's, as Docker names it."""
    own = f"docker-{path[-1]}.scope" if driver == "systemd" else path[-1]
    return f"{folder(path[:-1], driver)}/{own}"


def unit(path: Path) -> str:
    """The slice's name: each level repeats the one above it, so a part may have no dash of its own."""
    return "-".join(part.replace("-", "_") for part in path) + ".slice"


def parent_argument(path: Path, driver: str) -> str:
    """How the container runtime is told to put a container beneath this cgroup."""
    return unit(path) if driver == "systemd" else "/" + folder(path, driver)
