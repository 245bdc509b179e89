"""Malicious manifests and folders: the agent uses little memory, reports the error, and keeps its pods running."""

from __future__ import annotations

import os
from typing import Any

from chronolet_schemas import manifests
from tests.attacks.attacked import Attacked
from tests.e2e.node import pod, shell

MIB = 1 << 20
HANG = 60


def bomb(name: str) -> dict[str, Any]:
    """Return a pod whose last environment variable would expand to about 10 TB."""
    doubling = [{"name": f"A{number}", "value": f"$(A{number - 1})" * 2} for number in range(1, 41)]
    return pod(name, shell("app", env=[{"name": "A0", "value": "aaaaaaaaaa"}, *doubling]))


def test_a_variable_bomb_takes_no_memory_and_can_be_deleted(attacked: Attacked) -> None:
    attacked.write("fine.yaml", pod("fine"))
    attacked.wait_until_running("fine")
    before = attacked.peak_bytes()
    attacked.write("bomb.yaml", bomb("bomb"))
    attacked.wait_for_status("bomb", "CreateContainerConfigError", HANG)
    shown = attacked.chronolet("apply", "--dry-run", "-f", attacked.write_unwatched("other.yaml", bomb("other")))
    assert "spec.containers[0].env[14]: variable A14 has 163845 bytes once expanded" in shown.out + shown.err

    (attacked.folder / "bomb.yaml").unlink()
    attacked.wait_until_gone("bomb")
    assert attacked.peak_bytes() - before < 100 * MIB
    assert attacked.all_run("fine")
    attacked.assert_well()


def test_a_fifo_is_neither_read_nor_mounted(attacked: Attacked) -> None:
    os.mkfifo(attacked.folder / "pipe.yaml")
    makes = shell("makes", "mkfifo /v/it; mknod /v/null c 1 3; true", volumeMounts=[{"name": "v", "mountPath": "/v"}])
    uses = shell("uses", volumeMounts=[{"name": "v", "mountPath": "/it", "subPath": "it"}])
    attacked.write("part.yaml", pod("part", uses, initContainers=[makes], volumes=[{"name": "v", "emptyDir": {}}]))
    refused = attacked.journal.wait_for_event(manifests.FileRefused, HANG, path=str(attacked.folder / "pipe.yaml"))
    assert "not a regular file" in " ".join(refused.errors)
    attacked.wait_for_status("part", "CreateContainerConfigError", HANG)
    uses_it = attacked.journal.pods["default/part"].container("uses")
    assert uses_it is not None
    assert "'it' is a FIFO, expected a directory or a regular file" in uses_it.message
    (attacked.folder / "pipe.yaml").unlink()
    (attacked.folder / "part.yaml").unlink()
    attacked.wait_until_gone("part")
    attacked.assert_well()


def test_a_folder_that_disappears_for_a_while_ends_no_pod(attacked: Attacked) -> None:
    attacked.write("fine.yaml", pod("fine"))
    attacked.wait_until_running("fine")
    runs = attacked.started_at("fine")
    away = attacked.root / "away"

    attacked.folder.rename(away)
    attacked.journal.wait_for_event(manifests.FolderUnreadable, HANG)
    away.rename(attacked.folder)
    _read_again(attacked, 1)

    attacked.folder.rename(away)
    attacked.journal.wait_for("the folder gone again", lambda: _count(attacked, manifests.FolderUnreadable) == 2, HANG)
    attacked.folder.symlink_to(away)
    _read_again(attacked, 2)
    assert attacked.started_at("fine") == runs

    (away / "fine.yaml").unlink()
    attacked.wait_until_gone("fine")
    attacked.assert_well()


def _read_again(attacked: Attacked, times: int) -> None:
    begun = 1
    what = f"the folder read again ({times})"
    attacked.journal.wait_for(what, lambda: _count(attacked, manifests.FolderRead) == begun + times, HANG)


def _count(attacked: Attacked, kind: type[Any]) -> int:
    return len(attacked.journal.events(kind))
