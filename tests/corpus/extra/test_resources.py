"""Requests, limits and overhead of a whole pod, seen in its cgroup."""

from pathlib import Path
from typing import Final

import pytest

from tests.corpus.extra.pods import AppliedPods, add_pod, script

pytestmark = pytest.mark.docker

MIB: Final = 1 << 20
CGROUPS: Final = Path("/sys/fs/cgroup")

WHOLE = add_pod(
    "whole",
    script("app", "true"),
    resources={"requests": {"cpu": "250m", "memory": "16Mi"}, "limits": {"cpu": "500m", "memory": "32Mi"}},
    overhead={"cpu": "100m", "memory": "8Mi"},
)


def test_the_limits_of_a_whole_pod_are_those_of_its_cgroup(pods: AppliedPods) -> None:
    assert pods.output(WHOLE) == ""
    parent = pods.inspected(WHOLE)["app"]["HostConfig"]["CgroupParent"].lstrip("/")
    memory, cpu = CGROUPS / "memory" / parent, CGROUPS / "cpu" / parent
    assert int((memory / "memory.limit_in_bytes").read_text()) == (32 + 8) * MIB
    assert int((cpu / "cpu.cfs_quota_us").read_text()) == 60_000
    assert int((cpu / "cpu.shares").read_text()) == 350 * 1024 // 1000
