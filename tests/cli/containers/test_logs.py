"""`logs`: the container and options of each request to Docker, and the error if there is no output."""

import socket
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli.containers.log_target import run_of
from chronolet.cli.containers.parts import Part
from chronolet.cli.errors import Failure
from chronolet.cli.services import ANSWER_SECONDS, docker_runtime
from tests.cli.support.histories import APP, RUN, SECOND, WEB, accepted, crash, start
from tests.cli.support.written_node import NOON, WrittenNode


class Docker:
    """Records the requests for logs, and returns the same output for each request."""

    def __init__(self, node: WrittenNode, output: Sequence[tuple[str, bytes]]) -> None:
        self.requests: list[tuple[str, dict[str, object]]] = []
        self.output = output
        node.runtime.logs = self.logs  # type: ignore[method-assign]

    def logs(self, container_id: str, **options: object) -> Iterator[tuple[str, bytes]]:
        self.requests.append((container_id, options))
        return iter(self.output)


EVERYTHING = {"follow": False, "tail": None, "since": None, "timestamps": False}


def test_docker_is_queried_for_the_current_or_the_previous_run(node: WrittenNode) -> None:
    previous, current = "c0" * 32, "c1" * 32
    node.write(WEB, *start(APP, 2, previous, node.now), *crash(2, previous, node.now))
    docker = Docker(node, [("stdout", b"out\n"), ("stderr", b"err\n")])
    result = node.run("logs", "web", "-c", "app", "--tail", "5", "--since", "10s", "--timestamps")
    assert result == ("out\nerr\n", "", 0), "both streams, as in kubectl"
    some = {"follow": False, "tail": 5, "since": node.now - 10 * SECOND, "timestamps": True}
    assert docker.requests.pop() == (previous, some)
    node.write(WEB, *start(APP, 3, current, node.now))
    assert node.run("logs", "pod/web", "app").status == 0
    assert docker.requests.pop() == (current, EVERYTHING)
    assert node.run("logs", "web", "app", "-p", "-f").status == 0
    assert docker.requests.pop() == (previous, EVERYTHING)
    assert node.run("logs", "web", "app", "--since-time", "2027-01-15T08:00:05.5Z", "-f").status == 0
    assert docker.requests.pop() == (current, {**EVERYTHING, "follow": True, "since": NOON + 5_500})


def test_all_containers_are_printed_in_turn_or_merged_with_follow(node: WrittenNode) -> None:
    docker = Docker(node, [("stdout", b"one\ntw"), ("stdout", b"o\nthree")])
    result = node.run("logs", "web", "--all-containers", "--prefix")
    assert (result.status, result.errors) == (0, "")
    lines = ["one\n", "two\n", "three"]
    assert result.output == "".join(f"[pod/web/{name}] {line}" for name in ("app", "side") for line in lines)
    together = node.run("logs", "web", "--all-containers", "-f")
    assert sorted(together.output) == sorted("".join(lines) * 2)
    assert [container for container, _ in docker.requests] == ["a1" * 32, RUN, *(one for one, _ in docker.requests[2:])]
    assert {one for one, _ in docker.requests[2:]} == {"a1" * 32, RUN}
    many = node.run("logs", "web", "--all-containers", "-f", "--max-log-requests=1")
    assert (many.status, "follow 2 log streams, but maximum allowed concurrency is 1" in many.errors) == (1, True)


def test_selected_pods_are_printed_in_turn(node: WrittenNode) -> None:
    docker = Docker(node, [("stdout", b"out\n")])
    node.write("pod/default/api", accepted("api"), *start({**APP, "pod": "default/api"}, 0, "b0" * 32, node.now))
    result = node.run("logs", "-l", "!x", "-c", "app", "--prefix")
    assert result == ("[pod/api/app] out\n[pod/web/app] out\n", "", 0)
    assert [options["tail"] for _, options in docker.requests] == [10, 10]
    node.run("logs", "-l", "!x", "-c", "app", "--tail=-1")
    assert docker.requests[-1][1]["tail"] is None
    assert node.run("logs", "-l", "x") == ("", "No resources found in default namespace.\n", 0)
    assert node.run("logs", "-l", "x", "web").status == node.run("logs").status == 2


def test_limit_bytes_limits_the_output(node: WrittenNode) -> None:
    Docker(node, [("stdout", b"one\n"), ("stderr", b"two\n")])
    assert node.run("logs", "web", "app", "--limit-bytes", "6").output == "one\ntw"
    assert node.run("logs", "web", "app", "--limit-bytes", "4").output == "one\n"
    assert node.run("logs", "web", "app", "--limit-bytes", "99").output == "one\ntwo\n"


def test_a_container_without_output_ends_the_command_unless_errors_are_ignored(node: WrittenNode) -> None:
    Docker(node, [("stdout", b"out\n")])
    none = 'error: previous terminated container "side" in pod "web" not found\n'
    node.write(WEB, *crash(1, "a1" * 32, node.now), *start(APP, 2, "a2" * 32, node.now))
    assert node.run("logs", "web", "--all-containers", "-p") == ("out\n", none, 1)
    assert node.run("logs", "web", "--all-containers", "-p", "--ignore-errors") == ("out\n", none, 0)
    assert node.run("logs", "web", "--all-containers", "-p", "-f") == ("out\n", none, 1)


@pytest.mark.parametrize(
    "words",
    [
        ["-c", "app", "--all-containers"],
        ["app", "-c", "app"],
        ["--since", "1s", "--since-time", "2027-01-15T08:00:00Z"],
        ["--since-time", "yesterday"],
        ["--since-time", "2027-01-15T08:00:00"],
        ["--limit-bytes", "0"],
    ],
)
def test_invalid_combinations_of_flags_are_usage_errors(node: WrittenNode, words: list[str]) -> None:
    assert node.run("logs", "web", *words).status == 2


def test_an_error_explains_why_there_are_no_logs(node: WrittenNode) -> None:
    assert node.run("logs", "web", "-c", "side", "-p").errors == (
        'error: previous terminated container "side" in pod "web" not found\n'
    )
    assert node.run("logs", "web", "-c", "cook").errors == (
        "error: container cook is not valid for pod web, expected app, side\n"
    )
    assert node.run("logs", "db", "-n", "data").errors == (
        'error: container "app" in pod "db" is waiting to start: ContainerCreating\n'
    )
    gone = node.run("logs", "web")
    assert gone.status == 1
    unknown = (
        "error: container a1a1a1a1a1a1 of pod web is not in the Docker Engine at unix:///var/run/docker.sock: it was "
        "removed, or another engine has it; the log does not record the node agent's engine, specify it with "
        "--docker URL"
    )
    assert gone.errors.splitlines() == ['Defaulted container "app" out of: app, side', unknown]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, "is not available"),
        ({"state": {"waiting": {}}}, "is waiting to start - no logs yet"),
        ({"state": {"waiting": {"reason": "ErrImagePull"}}}, "is waiting to start: image can't be pulled"),
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff"}}},
            "is waiting to start: trying and failing to pull image",
        ),
        ({"state": {"terminated": {"exitCode": 128}}}, "is terminated"),
    ],
)
def test_a_container_without_a_run_is_reported_in_the_kubelets_words(state: dict[str, Any], words: str) -> None:
    part = Part("app", "app", {"name": "app"}, state)
    with pytest.raises(Failure) as failure:
        run_of(part, "web", previous=False)
    assert failure.value.lines == (f'container "app" in pod "web" {words}',)


def test_logs_of_a_docker_that_does_not_respond_are_one_error_line(node: WrittenNode, tmp_path: Path) -> None:
    """The socket accepts connections but nothing responds, as if Docker's process were stopped."""
    assert ANSWER_SECONDS == 10
    node.docker = partial(docker_runtime, timeout_seconds=0.2)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "sock"))
        silent.listen()
        result = node.run("logs", "web", "-c", "side", "-f", "--docker", f"unix://{tmp_path}/sock")
    assert (result.status, result.output) == (1, "")
    assert result.errors == f"error: Docker at {tmp_path}/sock: no answer in time to GET /version\n"
