"""The Redis connection: a failed one is freed immediately, without Python's cycle collector; waiting calls share a
round trip; a loading server is polled on one connection.
"""

import contextlib
import gc
import itertools
import shutil
import socket
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from chronolet.adapters.redis_server.server import OwnServer
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.errors import RedisError
from chronolet.kernel.storage.store import StoreUnreachable
from tests.support import scratch

LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"


class ScriptedServer:
    """A server on a unix socket that sends the next of `replies` for each command. An incomplete reply ends the
    connection.
    """

    def __init__(self, path: Path, replies: Iterator[bytes]) -> None:
        self.url = f"unix://{path}"
        self.accepted = 0
        self._replies = replies
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(5)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.accepted += 1
                with client:
                    while client.recv(65536):
                        reply = next(self._replies, b"")
                        client.sendall(reply)
                        if not reply.endswith(b"\r\n"):
                            break


@pytest.fixture
def folder() -> Iterator[Path]:
    made = scratch.create("wire")
    yield made
    shutil.rmtree(made)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Disable the cycle collector, so that an object is freed only when nothing refers to it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def use(url: str, *, timeout: float = scratch.HANG_SECONDS) -> tuple[str, "weakref.ref[object]"]:
    """Return the result of a call on a new connection, and a weak reference to the connection with its buffer."""
    channel = Channel(Address(url), timeout)
    wire = weakref.ref(channel._connection)
    try:
        return str(channel.call("PING")), wire
    except (StoreUnreachable, RedisError) as error:
        return type(error).__name__, wire
    finally:
        channel.disconnect()


@pytest.mark.parametrize(
    ("replies", "outcome"),
    [
        ([b"+PONG\r\n"], "b'PONG'"),
        ([b"-ERR no such command\r\n"], "ResponseError"),
        ([LOADING, LOADING], "StoreUnreachable"),
        ([b"", b""], "StoreUnreachable"),
        ([b"+PO", b"+PO"], "StoreUnreachable"),
        ([b">2\r\n+message\r\n+text\r\n"] * 2, "StoreUnreachable"),
        ([b"HTTP/1.1 400 Bad Request\r\n"] * 2, "StoreUnreachable"),
    ],
    ids=["replied", "refused", "loading", "ended", "cut", "push", "no-redis"],
)
def test_a_dropped_connection_is_freed(no_collector: None, folder: Path, replies: list[bytes], outcome: str) -> None:
    server = ScriptedServer(folder / "socket", iter(replies))
    result, wire = use(server.url)
    server.close()
    assert (result, wire()) == (outcome, None)


def test_a_connection_that_timed_out_is_freed(no_collector: None, folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(folder / "socket"))
        silent.listen(5)
        result, wire = use(f"unix://{folder / 'socket'}", timeout=0.05)
    assert (result, wire()) == ("StoreUnreachable", None)


def test_a_connection_that_found_no_server_is_freed(no_collector: None, folder: Path) -> None:
    result, wire = use(f"unix://{folder / 'socket'}")
    assert (result, wire()) == ("StoreUnreachable", None)


def test_waiting_for_a_loading_server_takes_one_connection(
    no_collector: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server replies LOADING thirty times. All these replies must use one connection, because each connection has
    its own buffer.
    """
    made = 0
    connection = Address.connection

    def counted(self: Address, timeout: float) -> object:
        nonlocal made
        made += 1
        return connection(self, timeout)

    server = OwnServer(folder, answer_seconds=scratch.HANG_SECONDS)  # a time-out would lead to one more connection
    server.folder.mkdir()
    loading = ScriptedServer(server.socket, itertools.chain([LOADING] * 30, itertools.repeat(b"+PONG\r\n")))
    monkeypatch.setattr(Address, "connection", counted)
    monkeypatch.setattr(server, "pid", lambda: 1)
    assert server.ensure() == "adopted"
    loading.close()
    # The check of the socket's peer also opens a connection, but sends no command.
    assert (loading.accepted, made) == (32, 1)


def join_together(channel: Channel, calls: list[bytes]) -> list[str]:
    """Make these calls wait together while the connection is in use, and return their results in order."""
    outcomes = [""] * len(calls)

    def join(number: int) -> None:
        try:
            outcomes[number] = str(channel.join(calls[number]))
        except (RedisError, KeyboardInterrupt) as error:
            outcomes[number] = f"{type(error).__name__}: {error}"

    with channel._lock:
        threads = [threading.Thread(target=join, args=(number,)) for number in range(len(calls))]
        for number, thread in enumerate(threads):
            thread.start()
            scratch.wait_until(lambda number=number: len(channel._waiting) > number, "the call")  # type: ignore[misc]
    for thread in threads:
        thread.join(scratch.HANG_SECONDS)
    return outcomes


def test_calls_that_wait_together_take_one_round_trip_and_each_gets_its_own_reply(folder: Path) -> None:
    server = ScriptedServer(folder / "sock", iter([b"+one\r\n-ERR two\r\n:3\r\n", b"+four\r\n"]))
    channel = Channel(Address(server.url), scratch.HANG_SECONDS)
    calls = [channel.pack("PING", str(number)) for number in range(3)]
    assert join_together(channel, calls) == ["b'one'", "ResponseError: ERR two", "3"]
    assert channel.join(calls[0]) == b"four"
    channel.disconnect()
    server.close()


def test_each_joined_call_without_a_reply_fails_when_the_connection_is_lost(folder: Path) -> None:
    server = ScriptedServer(folder / "sock", iter([b"+one\r\n+tw", b"+again\r\n"]))
    channel = Channel(Address(server.url), scratch.HANG_SECONDS)
    calls = [channel.pack("PING", str(number)) for number in range(3)]
    first, *others = join_together(channel, calls)
    assert first == "b'one'"
    assert [one.partition(":")[0] for one in others] == ["ConnectionLost"] * 2
    assert channel.join(calls[0]) == b"again"
    assert server.accepted == 2
    channel.disconnect()
    server.close()


def test_a_caller_that_has_its_reply_waits_for_no_further_round_trip(folder: Path) -> None:
    gates = [threading.Event() for _ in range(3)]

    def replies() -> Iterator[bytes]:
        for gate, reply in zip(gates, (b"+1\r\n", b"+2\r\n+3\r\n", b"+4\r\n"), strict=True):
            assert gate.wait(scratch.HANG_SECONDS)
            yield reply

    server = ScriptedServer(folder / "sock", replies())
    channel = Channel(Address(server.url), scratch.HANG_SECONDS)
    call = channel.pack("PING")
    with ThreadPoolExecutor(4) as threads:

        def joining(waiting: int) -> Future[bytes]:
            """Start a call, and wait until it is one of `waiting` calls that wait for the current round trip to end."""
            joined = threads.submit(channel.join, call)
            scratch.wait_until(lambda: len(channel._waiting) == waiting and channel._lock.locked(), "the call")
            return joined

        first = joining(0)
        second, third = joining(1), joining(2)
        gates[0].set()
        assert first.result(scratch.HANG_SECONDS) == b"1"
        scratch.wait_until(lambda: not channel._waiting and channel._lock.locked(), "the second trip")
        fourth = joining(1)
        gates[1].set()
        # The fourth call, to which one of these two handed the lead, has no reply yet.
        assert [one.result(scratch.HANG_SECONDS) for one in (second, third)] == [b"2", b"3"]
        assert not fourth.done()
        gates[2].set()
        assert fourth.result(scratch.HANG_SECONDS) == b"4"
    channel.disconnect()
    server.close()


def test_an_interrupt_of_one_joined_call_is_an_error_for_all_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ScriptedServer(folder / "sock", iter([b"+one\r\n"]))
    channel = Channel(Address(server.url), scratch.HANG_SECONDS)

    def interrupted(_: object = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(channel._connection, "receive", interrupted)
    calls = [channel.pack("PING", str(number)) for number in range(3)]
    outcomes = join_together(channel, calls)
    assert sorted(one.partition(":")[0] for one in outcomes) == [
        "ConnectionLost",
        "ConnectionLost",
        "KeyboardInterrupt",
    ]
    server.close()


@pytest.mark.parametrize("replies", [[b"-ERR no\r\n"], [b"+o"], [LOADING]])
def test_a_connection_of_a_joined_call_that_failed_is_freed(
    no_collector: None, folder: Path, replies: list[bytes]
) -> None:
    server = ScriptedServer(folder / "sock", iter(replies))
    channel = Channel(Address(server.url), scratch.HANG_SECONDS)
    wire = weakref.ref(channel._connection)
    with contextlib.suppress(RedisError):
        channel.join(channel.pack("PING"))
    channel.disconnect()
    del channel
    assert wire() is None
    server.close()
