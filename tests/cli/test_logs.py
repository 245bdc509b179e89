"""`logs`: which container of Docker's it asks for what, and what it says where there is none."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from chronolet.cli import services
from chronolet.cli.containers.logged import run_of
from chronolet.cli.containers.parts import Part
from chronolet.cli.errors import Failure
from tests.cli.histories import APP, RUN, SECOND, WEB, accepted, crash, start
from tests.cli.written import NOON, WrittenNode


class Docker:
    """Remembers what it was asked for, and has the same output for everybody."""

    def __init__(self, node: WrittenNode, output: Sequence[tuple[str, bytes]]) -> None:
        self.asked: list[tuple[str, dict[str, object]]] = []
        self.output = output
        node.runtime.logs = self.logs  # type: ignore[method-assign]

    def logs(self, container_id: str, **options: object) -> Iterator[tuple[str, bytes]]:
        self.asked.append((container_id, options))
        return iter(self.output)


EVERYTHING = {"follow": False, "tail": None, "since": None, "timestamps": False}


def test_docker_is_asked_for_the_run_at_hand_or_the_one_before_it(node: WrittenNode) -> None:
    dead, now = "c0" * 32, "c1" * 32
    node.write(WEB, *start(APP, 2, dead, node.now), *crash(2, dead, node.now))
    docker = Docker(node, [("stdout", b"out\n"), ("stderr", b"err\n")])
    said = node.run("logs", "web", "-c", "app", "--tail", "5", "--since", "10s", "--timestamps")
    assert said == ("out\nerr\n", "", 0), "both streams, as kubectl has them"
    some = {"follow": False, "tail": 5, "since": node.now - 10 * SECOND, "timestamps": True}
    assert docker.asked.pop() == (dead, some)
    node.write(WEB, *start(APP, 3, now, node.now))
    assert node.run("logs", "pod/web", "app").status == 0
    assert docker.asked.pop() == (now, EVERYTHING)
    assert node.run("logs", "web", "app", "-p", "-f").status == 0
    assert docker.asked.pop() == (dead, EVERYTHING)
    assert node.run("logs", "web", "app", "--since-time", "2027-01-15T08:00:05.5Z", "-f").status == 0
    assert docker.asked.pop() == (now, {**EVERYTHING, "follow": True, "since": NOON + 5_500})


def test_all_containers_speak_one_after_the_other_or_together(node: WrittenNode) -> None:
    docker = Docker(node, [("stdout", b"one\ntw"), ("stdout", b"o\nthree")])
    said = node.run("logs", "web", "--all-containers", "--prefix")
    assert (said.status, said.err) == (0, "")
    lines = ["one\n", "two\n", "three"]
    assert said.out == "".join(f"[pod/web/{name}] {line}" for name in ("app", "side") for line in lines)
    together = node.run("logs", "web", "--all-containers", "-f")
    assert sorted(together.out) == sorted("".join(lines) * 2)
    assert [container for container, _ in docker.asked] == ["a1" * 32, RUN, *(one for one, _ in docker.asked[2:])]
    assert {one for one, _ in docker.asked[2:]} == {"a1" * 32, RUN}
    many = node.run("logs", "web", "--all-containers", "-f", "--max-log-requests=1")
    assert (many.status, "follow 2 log streams, but maximum allowed concurrency is 1" in many.err) == (1, True)


def test_pods_with_a_label_speak_one_after_the_other(node: WrittenNode) -> None:
    docker = Docker(node, [("stdout", b"out\n")])
    node.write("pod/default/api", accepted("api"), *start({**APP, "pod": "default/api"}, 0, "b0" * 32, node.now))
    said = node.run("logs", "-l", "!x", "-c", "app", "--prefix")
    assert said == ("[pod/api/app] out\n[pod/web/app] out\n", "", 0)
    assert [options["tail"] for _, options in docker.asked] == [10, 10]
    node.run("logs", "-l", "!x", "-c", "app", "--tail=-1")
    assert docker.asked[-1][1]["tail"] is None
    assert node.run("logs", "-l", "x") == ("", "No resources found in default namespace.\n", 0)
    assert node.run("logs", "-l", "x", "web").status == node.run("logs").status == 2


def test_no_more_bytes_than_asked_for(node: WrittenNode) -> None:
    Docker(node, [("stdout", b"one\n"), ("stderr", b"two\n")])
    assert node.run("logs", "web", "app", "--limit-bytes", "6").out == "one\ntw"
    assert node.run("logs", "web", "app", "--limit-bytes", "4").out == "one\n"
    assert node.run("logs", "web", "app", "--limit-bytes", "99").out == "one\ntwo\n"


def test_a_container_without_output_stops_the_rest_unless_told_otherwise(node: WrittenNode) -> None:
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
def test_what_cannot_be_asked_for_is_a_usage_error(node: WrittenNode, words: list[str]) -> None:
    assert node.run("logs", "web", *words).status == 2


def test_logs_say_why_there_are_none(node: WrittenNode) -> None:
    assert node.run("logs", "web", "-c", "side", "-p").err == (
        'error: previous terminated container "side" in pod "web" not found\n'
    )
    assert node.run("logs", "web", "-c", "cook").err == (
        "error: container cook is not valid for pod web, expected app, side\n"
    )
    assert node.run("logs", "db", "-n", "data").err == (
        'error: container "app" in pod "db" is waiting to start: ContainerCreating\n'
    )
    gone = node.run("logs", "web")
    assert gone.status == 1
    unknown = (
        "error: container a1a1a1a1a1a1 of pod web is not in the Docker Engine at unix:///var/run/docker.sock: it was "
        "removed, or another engine has it; the log does not record the node agent's engine, specify it with "
        "--docker URL"
    )
    assert gone.err.splitlines() == ['Defaulted container "app" out of: app, side', unknown]


def waits(reason: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason}}}


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
def test_the_kubelets_words_for_a_container_without_a_run(state: dict[str, Any], words: str) -> None:
    part = Part("app", "app", {"name": "app"}, state)
    with pytest.raises(Failure) as failure:
        run_of(part, "web", previous=False)
    assert failure.value.lines == (f'container "app" in pod "web" {words}',)


def test_logs_of_a_docker_that_does_not_answer_end_with_one_line(
    node: WrittenNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was stopped: its socket takes connections and nobody answers."""
    assert services.ANSWER_SECONDS == 10
    monkeypatch.setattr(services, "ANSWER_SECONDS", 0.2)
    node.docker = services.docker_runtime
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "sock"))
        silent.listen()
        said = node.run("logs", "web", "-c", "side", "-f", "--docker", f"unix://{tmp_path}/sock")
    assert (said.status, said.out) == (1, "")
    assert said.err == f"error: Docker at {tmp_path}/sock: no answer in time to GET /version\n"
