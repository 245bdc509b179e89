"""`exec`: container, input, output, exit status. tests/e2e/commands/test_terminal.py tests its use of a terminal."""

from typing import Any

import pytest

from chronolet.adapters.fakes.runtime import FakeRuntime, Program
from chronolet.ports.runtime.runtime import ContainerSpec, SandboxSpec
from chronolet_schemas import pod
from tests.cli.support.histories import APP, SIDE, WEB, accepted, start
from tests.cli.support.written_node import WrittenNode

LS = ("ls", "-l", "--", "/data")
PROGRAMS = {
    LS: Program(exits=0, stdout=b"data\n", stderr=b"note\n"),
    ("false",): Program(exits=7),
}
IMAGE = "busybox:1"


@pytest.fixture
def node() -> WrittenNode:
    """A node whose pod web has the running containers app and side, both in the log and in the fake Docker."""
    node = WrittenNode()
    runtime = node.runtime = FakeRuntime(programs=PROGRAMS, images=[IMAGE])
    box = runtime.create_sandbox(SandboxSpec(name="box", labels={}, image=IMAGE, hostname="web"))
    runtime.start(box)
    node.write(WEB, accepted(containers=[{"name": name, "image": IMAGE} for name in ("app", "side")]))
    for about in (APP, SIDE):
        spec = ContainerSpec(name=about["container"], labels={}, sandbox_id=box, image=IMAGE)
        created = runtime.create_container(spec)
        runtime.start(created)
        node.write(WEB, *start(about, 0, created, node.now))
    return node


def test_output_errors_and_status_are_those_of_the_command(node: WrittenNode) -> None:
    assert node.run("exec", "web", "-c", "side", "--", *LS) == ("data\n", "note\n", 0)
    assert node.run("exec", "pod/web", "-q", "--", "false") == ("", "command terminated with exit code 7\n", 7)


def test_the_first_container_is_the_default_and_is_named(node: WrittenNode) -> None:
    result = node.run("exec", "web", "--", *LS)
    assert result.errors == 'Defaulted container "app" out of: app, side\nnote\n'
    assert node.run("exec", "web", "--quiet", "--", *LS).errors == "note\n"


def test_standard_input_reaches_the_command_only_with_its_flag(node: WrittenNode) -> None:
    assert node.run("exec", "-i", "web", "-c", "app", "--", "cat", stdin=b"a\nb").output == "a\nb"
    assert node.run("exec", "web", "-c", "app", "--", "cat", stdin=b"a\nb").output == ""


def test_a_tty_is_not_allocated_without_a_local_terminal(node: WrittenNode) -> None:
    result = node.run("exec", "-it", "web", "-c", "app", "--", "cat", stdin=b"a\n")
    assert result == ("a\n", "Unable to use a TTY - input is not a terminal or the right kind of file\n", 0)
    assert node.run("exec", "-t", "web", "-c", "app", "--", *LS) == ("data\n", "note\n", 0), "-t alone has no effect"


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (["web"], 2, "you must specify at least one command for the container"),
        (["web", "--"], 2, "you must specify at least one command for the container"),
        (["web", "ls"], 2, "exec POD COMMAND is not supported (found 'ls'), use exec POD -- COMMAND instead"),
        (["--", "ls"], 2, "Missing argument"),
        (["web", "-x", "--", "ls"], 2, "No such option"),
        (["nope", "--", "ls"], 1, 'Error from server (NotFound): pods "nope" not found'),
        (["web", "-c", "cook", "--", "ls"], 1, "container cook is not valid for pod web, expected app, side"),
    ],
)
def test_a_command_that_cannot_run_is_one_error_line(
    node: WrittenNode, words: list[str], status: int, error: str
) -> None:
    result = node.run("exec", *words)
    assert (result.status, result.output) == (status, "")
    assert result.errors.startswith((f"error: {error}", error))
    assert result.errors.count("\n") == 1
    assert node.runtime.execs.all == {}


def test_exec_in_a_container_that_is_not_running_fails(node: WrittenNode) -> None:
    node.write("pod/default/db", accepted("db"))
    result = node.run("exec", "db", "--", "ls")
    assert result == ("", 'error: container "app" in pod "db" is not running: ContainerCreating\n', 1)
    # The container exits, but the log does not record it yet.
    node.runtime.end(next(one.id for one in node.runtime.list({}) if one.name == "app"))
    late = node.run("exec", "web", "-q", "--", "ls")
    assert (late.status, "is not running" in late.errors) == (1, True)


def test_exec_in_a_completed_pod_fails(node: WrittenNode) -> None:
    about: dict[str, Any] = {**APP, "pod": "default/once"}
    ended = pod.ContainerExited(
        **about, attempt=0, id="c", exit_code=0, reason="Completed", started_at=1, finished_at=2
    )
    once = accepted("once", restartPolicy="Never")
    node.write("pod/default/once", once, *start(about, 0, "c", node.now), ended)
    result = node.run("exec", "once", "--", "ls")
    assert result == ("", "error: cannot exec into a container in a completed pod; current phase is Succeeded\n", 1)
