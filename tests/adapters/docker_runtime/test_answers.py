"""Docker's description of a container, converted to the port's state."""

from typing import Any

import msgspec
import pytest

from chronolet.adapters.docker_runtime import answers


def inspected(**state: Any) -> bytes:
    run = {"Status": "exited", "OOMKilled": False, "Pid": 0, "ExitCode": 0, "Error": "", **state}
    never = "0001-01-01T00:00:00Z"
    return msgspec.json.encode(
        {
            "Id": "1" * 64,
            "Name": "/one",
            "Created": "2026-01-01T00:00:00Z",
            "Image": "sha256:2",
            "State": {"StartedAt": never, "FinishedAt": never, **run},
            "Config": {"Image": "busybox:1"},
            "HostConfig": {},
        }
    )


@pytest.mark.parametrize(
    ("status", "finished", "length"),
    [("exited", "00.642", 0), ("dead", "00.642", 0), ("exited", "00.700", 42), ("running", "00.642", -16)],
    ids=["noted after its end", "dead", "usual", "started again"],
)
def test_the_end_is_never_before_the_start(status: str, finished: str, length: int) -> None:
    times = {"StartedAt": "2026-01-01T00:00:00.658Z", "FinishedAt": f"2026-01-01T00:00:{finished}Z"}
    found = answers.detail(inspected(Status=status, **times))
    assert found.finished_at - found.started_at == length


def test_a_container_that_never_started_has_no_times() -> None:
    found = answers.detail(inspected(Status="created"))
    assert (found.started_at, found.finished_at) == (0, 0)
