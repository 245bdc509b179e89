"""Containers with out-of-memory kills, found in the kernel's log."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet.adapters.machine.kernel_log import KernelLog, victim
from tests.e2e.resources import cgroup_files
from tests.support.docker.engine import IS_V2
from tests.support.scratch import wait_until

ID = "0123456789abcdef" * 4
HOG = "x=a; while :; do x=$x$x; done"


@pytest.mark.parametrize("cgroup", [f"/a/pod1/{ID}", f"/a.slice/a-pod1.slice/docker-{ID}.scope", f"/a/{ID}/below"])
def test_the_cgroup_of_the_victim_names_its_container(cgroup: str) -> None:
    line = f"6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={'f' * 64},mems_allowed=0"
    assert victim(f"{line},oom_memcg=/a,task_memcg={cgroup},task=sh,pid=7,uid=0\n".encode()) == ID


def test_other_records_name_no_container() -> None:
    for text in (
        "6,1,2,-;oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/user.slice,task=sh,pid=7,uid=0",
        f"6,1,2,-;docker0: port of {ID} entered forwarding state",
        f"6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/{ID},task_memcg=/elsewhere,task=sh",
    ):
        assert victim(text.encode()) == ""


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """Yield a cgroup limited to 8 MiB that is named like a container's. Its name is new for each test, since the log
    keeps the kills of earlier tests.
    """
    name = cgroup_files.named(f"chronolet-kmsg-{os.getpid()}")
    folder = cgroup_files.folder(name) / os.urandom(32).hex()
    if IS_V2:
        folder.parent.mkdir()
        (folder.parent / "cgroup.subtree_control").write_text("+memory")
    folder.mkdir(parents=True)
    (folder / ("memory.max" if IS_V2 else "memory.limit_in_bytes")).write_text(str(8 << 20))
    yield folder
    for one in (folder, folder.parent):
        wait_until(lambda one=one: _removed(one), f"the end of {one}")


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def test_earlier_and_later_kills_are_found(cgroup: Path) -> None:
    log = KernelLog()
    assert not log.named(cgroup.name)
    assert subprocess.run(_inside(cgroup, HOG), check=False).returncode == -9
    assert log.named(cgroup.name)
    assert KernelLog().named(cgroup.name)
    assert log.named(cgroup.name)


def _inside(cgroup: Path, script: str) -> list[str]:
    return ["sh", "-c", f'echo $$ > {cgroup}/cgroup.procs; exec sh -c "$0"', script]


def test_an_unreadable_log_yields_nothing(tmp_path: Path) -> None:
    nothing = KernelLog(str(tmp_path / "none"))
    assert not nothing.named(ID)
    assert nothing.why_not() == f"{tmp_path}/none: No such file or directory"
    log = tmp_path / "log"
    log.write_bytes(b"6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/a/" + ID.encode() + b",task=sh\n")
    found = KernelLog(str(log))
    assert found.why_not() == ""
    assert found.named(ID)
    found.close()
    assert found.named(ID)
