"""READY, STATUS and RESTARTS of a pod, with kubectl's wording."""

from typing import Any

import pytest

from chronolet.cli.get import pod_rows


def container(state: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"name": "c", "ready": "running" in state, "restartCount": 0, "state": state, **fields}


RUNNING = container({"running": {"startedAt": "2027-01-15T08:00:00Z"}})
COMPLETED = container({"terminated": {"reason": "Completed", "exitCode": 0}})
KILLED = container({"terminated": {"exitCode": 137}})
WAITING = container({"waiting": {"reason": "ImagePullBackOff"}})


@pytest.mark.parametrize(
    ("phase", "containers", "deleted", "word"),
    [
        ("Pending", [], False, "Pending"),
        ("Running", [RUNNING], False, "Running"),
        ("Running", [RUNNING, COMPLETED], False, "NotReady"),
        ("Running", [COMPLETED, RUNNING], False, "NotReady"),
        ("Succeeded", [COMPLETED], False, "Completed"),
        ("Failed", [KILLED], False, "ExitCode:137"),
        ("Pending", [WAITING, RUNNING], False, "ImagePullBackOff"),
        ("Running", [KILLED, WAITING], False, "ExitCode:137"),
        ("Running", [RUNNING], True, "Terminating"),
        ("Succeeded", [COMPLETED], True, "Completed"),
    ],
)
def test_the_status_is_the_word_of_kubectl(
    phase: str, containers: list[dict[str, Any]], deleted: bool, word: str
) -> None:
    metadata = {"deletionTimestamp": "2027-01-15T08:00:00Z"} if deleted else {}
    status = {"phase": phase, "containerStatuses": containers}
    assert pod_rows.summarized({"metadata": metadata, "spec": {}, "status": status}).status == word


def test_a_pod_with_a_completed_container_is_running_or_not_ready() -> None:
    def word(ready: str) -> str:
        conditions = [{"type": "Ready", "status": ready}]
        status = {"phase": "Running", "containerStatuses": [RUNNING, COMPLETED], "conditions": conditions}
        return pod_rows.summarized({"metadata": {}, "spec": {}, "status": status}).status

    assert (word("True"), word("False")) == ("Running", "NotReady")


def test_restarts_include_the_age_of_the_last_one() -> None:
    first = container({}, restartCount=2, lastState={"terminated": {"finishedAt": "2027-01-15T08:00:00Z"}})
    second = container({}, restartCount=3, lastState={"terminated": {"finishedAt": "2027-01-15T07:00:00Z"}})
    summary = pod_rows.summarized({"metadata": {}, "spec": {}, "status": {"containerStatuses": [first, second]}})
    assert summary.restarted(1_800_000_000_000 + 120_000) == "5 (2m ago)"
    assert pod_rows.summarized({"metadata": {}, "spec": {}}).restarted(0) == "0"
