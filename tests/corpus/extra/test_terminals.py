"""Containers with a terminal, with standard input, with both, or with neither."""

import pytest

from tests.corpus.extra.pods import AppliedPods, add_pod, script

pytestmark = pytest.mark.docker

ASKS = "test -t 0 && echo terminal in; test -t 1 && echo terminal out; true"

NEITHER = add_pod("no-terminal", script("app", ASKS))
TERMINAL = add_pod("terminal", script("app", ASKS, tty=True, stdin=True))
READS = add_pod("reads", script("app", "echo ready; read first; echo $first; read second; echo $second", stdin=True))
READS_ONCE = add_pod(
    "reads-once", script("app", "echo ready; cat; echo over", stdin=True, stdinOnce=True), restartPolicy="Never"
)
NO_INPUT = add_pod("no-input", script("app", "cat; echo over"))


def write(pods: AppliedPods, name: str, text: bytes) -> None:
    """Attach to the container, write, and detach."""
    stream = pods.node.docker.attach_socket(pods.inspected(name)["app"]["Id"], {"stdin": 1, "stream": 1})
    try:
        stream._sock.sendall(text)
    finally:
        stream.close()


def test_a_container_without_a_terminal(pods: AppliedPods) -> None:
    assert pods.output(NEITHER) == ""


def test_a_container_with_a_terminal(pods: AppliedPods) -> None:
    assert pods.output(TERMINAL) == "terminal in\nterminal out\n"
    assert pods.differences(TERMINAL) == []


def test_an_input_that_stays_open_for_the_next_client(pods: AppliedPods) -> None:
    pods.wait("its first output", lambda: pods.written(READS) == "ready\n")
    write(pods, READS, b"one\n")
    pods.wait("the first client's output", lambda: pods.written(READS) == "ready\none\n")
    write(pods, READS, b"two\n")
    assert pods.output(READS) == "ready\none\ntwo\n"
    assert pods.differences(READS) == []


def test_an_input_that_ends_with_its_first_client(pods: AppliedPods) -> None:
    pods.wait("its first output", lambda: pods.written(READS_ONCE) == "ready\n")
    write(pods, READS_ONCE, b"one\n")
    assert pods.output(READS_ONCE) == "ready\none\nover\n"
    assert pods.differences(READS_ONCE) == []


def test_a_container_without_an_input_reads_its_end(pods: AppliedPods) -> None:
    assert pods.output(NO_INPUT) == "over\n"
