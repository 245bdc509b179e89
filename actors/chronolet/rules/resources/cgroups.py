"""CPU shares, weights and quotas, the desired values of a cgroup, and cgroup names for both drivers. Pure.

Input: milli CPUs, a path in the kubelet's terms (`kubepods`, `burstable`, `pod<uid>`). Output: shares, weights, quotas;
names. Next: `qos` builds the tree, `pod` starts containers in it, the adapters write the files.
Source: pkg/kubelet/cm/helpers_linux.go, cgroup_manager_linux.go.
"""

from __future__ import annotations

import msgspec

LEAST_SHARES, MOST_SHARES = 2, 262_144
_SHARES_OF_A_CPU = 1024
_LEAST_QUOTA_MICROSECONDS = 1_000  # the kernel's minimum
_MOST_WEIGHT = 10_000
QUOTA_PERIOD_MICROSECONDS = 100_000
UNLIMITED = -1
"""No limit, in v1's notation."""

Path = tuple[str, ...]


def shares(cpu_milli: int) -> int:
    """Convert a CPU request to v1's CPU shares."""
    return max(LEAST_SHARES, min(cpu_milli * _SHARES_OF_A_CPU // 1000, MOST_SHARES))


def quota(cpu_milli: int, period_us: int = QUOTA_PERIOD_MICROSECONDS) -> int:
    """Convert a CPU limit to a CPU quota in microseconds per period. For both, 0 means no limit."""
    return max(cpu_milli * period_us // 1000, _LEAST_QUOTA_MICROSECONDS) if cpu_milli else 0


def weight(cpu_shares: int) -> int:
    """Convert v1's shares to v2's weight."""
    return 1 + (cpu_shares - LEAST_SHARES) * (_MOST_WEIGHT - 1) // (MOST_SHARES - LEAST_SHARES)


def shares_of_weight(cpu_weight: int) -> int:
    """Convert v2's weight to v1's shares."""
    return LEAST_SHARES + (cpu_weight - 1) * (MOST_SHARES - LEAST_SHARES) // (_MOST_WEIGHT - 1)


class Values(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The desired values of one cgroup. None means the kernel's default: no limit and no guarantee.

    `memory_min_bytes`, `memory_low_bytes` and `memory_high_bytes` exist on v2 only. `huge_pages`: (page size, limit) in
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
    """One cgroup: its path and its desired values.

    A container's cgroup, whose path ends with the container's id, belongs to the runtime: `values` are written to it,
    but it is never created here.
    """

    path: Path
    values: Values = Values()
    is_containers: bool = False


def pod_name(uid: str) -> str:
    """Return the last component of a pod's cgroup path."""
    return f"pod{uid}"


def uid_of(name: str) -> str | None:
    """Return the pod uid in a cgroup name of either driver; None if the cgroup is not a pod's."""
    is_slice = name.endswith(".slice")
    last = name.removesuffix(".slice").rpartition("-")[2] if is_slice else name
    uid = last.removeprefix("pod")
    if uid in (last, ""):
        return None
    return uid.replace("_", "-") if is_slice else uid


def folder(path: Path, driver: str) -> str:
    """Return the cgroup's folder relative to a hierarchy's root."""
    if driver != "systemd":
        return "/".join(path)
    return "/".join(unit(path[: depth + 1]) for depth in range(len(path)))


def container_folder(path: Path, driver: str) -> str:
    """Like `folder`, for a container's cgroup as Docker names it."""
    own = f"docker-{path[-1]}.scope" if driver == "systemd" else path[-1]
    return f"{folder(path[:-1], driver)}/{own}"


def unit(path: Path) -> str:
    """Return the systemd slice name. It joins all levels with dashes, so dashes within a level are replaced."""
    return "-".join(part.replace("-", "_") for part in path) + ".slice"


def parent_argument(path: Path, driver: str) -> str:
    """Return the value of the runtime's cgroup parent option that places a container in this cgroup."""
    return unit(path) if driver == "systemd" else "/" + folder(path, driver)
