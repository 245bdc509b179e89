"""Refusals by an engine: their kind, which decides what is done next, and their message, which has one line."""

import msgspec
import pytest
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from chronolet.adapters.docker_runtime import errors


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (400, "invalid reference format", "invalid"),
        (404, "No such image: x:1", "not_found"),
        (409, "name is already in use", "conflict"),
        (503, "shutting down", "unavailable"),
        (500, "write /var/lib/docker/tmp: no space left on device", "no_space"),
        (500, "transport is closing: unavailable", "unavailable"),
        (500, "Get https://r/v2/: net/http: TLS handshake timeout", "timeout"),
        (500, "port is already allocated", "failed"),
        (418, "teapot", "failed"),
    ],
)
def test_the_kind_of_a_refusal(status: int, words: str, kind: str) -> None:
    refusal = errors.refused(status, b'{"message": "%s"}' % words.encode())
    assert (refusal.kind, str(refusal)) == (kind, words)


def test_messages_become_one_line() -> None:
    assert str(errors.refused(500, b'{"message": "first\\n  second\\tthird\\n"}')) == "first second third"


@pytest.mark.parametrize("body", [b"<html>bad\ngateway</html>", b"", b'{"message": ""}', b"\xff"])
def test_a_refusal_without_a_message(body: bytes) -> None:
    message = str(errors.refused(500, body))
    assert message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (FileNotFoundError(2, "No such file or directory"), "unavailable", "cannot connect"),
        (ConnectionRefusedError(111, "Connection refused"), "unavailable", "cannot connect"),
        (PermissionError(13, "Permission denied"), "denied", "permission denied"),
        (ProtocolError("Connection aborted.", ConnectionResetError(104, "reset by peer")), "unavailable", "cut off"),
        (ReadTimeoutError(None, "/x", "Read timed out."), "timeout", "no answer in time to GET /x"),  # type: ignore[arg-type]
        (TimeoutError("timed out"), "timeout", "no answer in time"),
    ],
)
def test_the_kind_of_a_broken_exchange(error: Exception, kind: str, words: str) -> None:
    refusal = errors.broken(error, "/run/docker.sock", "GET /x")
    assert refusal.kind == kind
    assert words in str(refusal)
    assert "/run/docker.sock" in str(refusal)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            f"connectivity on endpoint chrono_POD_web ({'ab12' * 16}): port is already allocated",
            "connectivity on endpoint chrono_POD_web: port is already allocated",
        ),
        (
            f'mounting "/x" to rootfs "/var/lib/docker/overlay2/{"0" * 64}/merged" caused: no such file',
            'mounting "/x" to rootfs "/var/lib/docker/overlay2/.../merged" caused: no such file',
        ),
        (f"open /run/{'f' * 64}-init: no such file", "open /run/...: no such file"),
        ("open /tmp/runc-process123456: gone", "open /tmp/runc-process...: gone"),
        (f"No such container: {'a' * 64}", f"No such container: {'a' * 64}"),
    ],
)
def test_equal_problems_have_equal_messages(message: str, expected: str) -> None:
    assert str(errors.refused(500, msgspec.json.encode({"message": message}))) == expected
