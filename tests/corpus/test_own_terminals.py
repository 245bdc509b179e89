"""Containers with a terminal, with an input, with both."""

import pytest

from tests.corpus.own import Ran, own, says

pytestmark = pytest.mark.docker

ASKS = "test -t 0 && echo terminal in; test -t 1 && echo terminal out; true"

NEITHER = own("no-terminal", says("app", ASKS))
TERMINAL = own("terminal", says("app", ASKS, tty=True, stdin=True))
READS = own("reads", says("app", "echo ready; read first; echo $first; read second; echo $second", stdin=True))
READS_ONCE = own(
    "reads-once", says("app", "echo ready; cat; echo over", stdin=True, stdinOnce=True), restartPolicy="Never"
)
NO_INPUT = own("no-input", says("app", "cat; echo over"))


def write(ran: Ran, name: str, text: bytes) -> None:
    """What a client that is attached writes before it goes."""
    stream = ran.node.docker.attach_socket(ran.inspected(name)["app"]["Id"], {"stdin": 1, "stream": 1})
    try:
        stream._sock.sendall(text)
    finally:
        stream.close()


def test_a_container_without_a_terminal(ran: Ran) -> None:
    assert ran.output(NEITHER) == ""


def test_a_container_with_a_terminal(ran: Ran) -> None:
    assert ran.output(TERMINAL) == "terminal in\nterminal out\n"
    assert ran.differences(TERMINAL) == []


def test_an_input_that_stays_open_for_the_next_client(ran: Ran) -> None:
    ran.wait("its first word", lambda: ran.written(READS) == "ready\n")
    write(ran, READS, b"one\n")
    ran.wait("the first client's word", lambda: ran.written(READS) == "ready\none\n")
    write(ran, READS, b"two\n")
    assert ran.output(READS) == "ready\none\ntwo\n"
    assert ran.differences(READS) == []


def test_an_input_that_ends_with_its_first_client(ran: Ran) -> None:
    ran.wait("its first word", lambda: ran.written(READS_ONCE) == "ready\n")
    write(ran, READS_ONCE, b"one\n")
    assert ran.output(READS_ONCE) == "ready\none\nover\n"
    assert ran.differences(READS_ONCE) == []


def test_an_input_that_nobody_can_write_to_is_at_its_end(ran: Ran) -> None:
    assert ran.output(NO_INPUT) == "over\n"
