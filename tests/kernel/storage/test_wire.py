"""Connections to a real server with each kind of URL, and the errors if a connection fails or is lost."""

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from redis.connection import parse_url

from chronolet.kernel.storage.redis import urls
from chronolet.kernel.storage.redis.connection import Address, Channel
from chronolet.kernel.storage.redis.errors import (
    ConnectionLost,
    LoginRefused,
    RedisError,
    ReplyLate,
    ResponseError,
    replied,
)
from chronolet.kernel.storage.redis.wire import pack
from chronolet.kernel.storage.store import StoreUnreachable
from tests.kernel.storage.test_urls import GOOD
from tests.support.ports import free_port
from tests.support.redis.server import PrivateRedis, private_redis
from tests.support.scratch import HANG_SECONDS, wait_until

SECRET = "S3/?#@ +%"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.crt, and with server.crt and client.crt, which are signed by it, and with all their keys."""
    folder = tmp_path_factory.mktemp("certificates")
    for name, *more in (("ca",), *((one, "-CA", "ca.crt", "-CAkey", "ca.key") for one in ("server", "client"))):
        files = ["-keyout", f"{name}.key", "-out", f"{name}.crt", "-days", "2", "-subj", f"/CN={name}"]
        about = ["-addext", "subjectAltName=IP:127.0.0.1"] if more else []
        request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        subprocess.run([*request, *files, *more, *about], cwd=folder, check=True, capture_output=True)
    return folder


class Addresses(NamedTuple):
    """A server with the user `me`, and its ports; TLS requires a client certificate."""

    server: PrivateRedis
    port: int
    tls_port: int
    encrypted: str
    """A URL with options for the certificates that TLS requires."""


@pytest.fixture(scope="module")
def addresses(certificates: Path) -> Iterator[Addresses]:
    port, tls_port = free_port(), free_port()
    files = {"ca-cert-file": "ca.crt", "cert-file": "server.crt", "key-file": "server.key"}
    words = [word for name, file in files.items() for word in (f"--tls-{name}", str(certificates / file))]
    with private_redis(port=port, more=("--tls-port", str(tls_port), *words)) as server:
        server.client().acl_setuser("me", enabled=True, passwords=[f"+{SECRET}"], commands=["+@all"], keys=["*"])
        options = {"ca_certs": "ca.crt", "certfile": "client.crt", "keyfile": "client.key"}
        query = "&".join(f"ssl_{name}={certificates / file}" for name, file in options.items())
        yield Addresses(server, port, tls_port, f"rediss://127.0.0.1:{tls_port}?{query}")


@pytest.fixture(params=["plain", "encrypted"])
def address(addresses: Addresses, request: pytest.FixtureRequest) -> Address:
    """The server's address, for each kind of connection."""
    return Address(addresses.encrypted if request.param == "encrypted" else addresses.server.url)


def call(url: str, *command: str, timeout: float = HANG_SECONDS) -> Any:
    channel = Channel(Address(url), timeout)
    try:
        return channel.call(*command)
    finally:
        channel.disconnect()


def test_a_url_may_have_its_user_and_password_in_either_place(addresses: Addresses) -> None:
    secret = quote(SECRET, safe="")
    for place in (f"unix://me:{secret}@{addresses.server.socket}", f"redis://me:{secret}@127.0.0.1:{addresses.port}/"):
        assert call(place, "ACL", "WHOAMI") == b"me"
    assert call(f"unix://{addresses.server.socket}?username=me&password={secret}", "ACL", "WHOAMI") == b"me"
    for wrong in ("me:wrong", ":needless", "me"):
        with pytest.raises(StoreUnreachable, match="refuses the password"):
            call(f"unix://{wrong}@{addresses.server.socket}", "PING")


def test_a_url_may_name_its_database_in_either_place(addresses: Addresses) -> None:
    for url in (f"unix://{addresses.server.socket}?db=3", f"redis://localhost:{addresses.port}/3"):
        assert b" db=3 " in call(url, "CLIENT", "INFO"), url
    with pytest.raises(StoreUnreachable, match="SELECT: ERR DB index is out of range"):
        call(f"unix://{addresses.server.socket}?db=99", "PING")


def test_tls_checks_certificates_as_the_url_requires(addresses: Addresses, certificates: Path) -> None:
    place = f"127.0.0.1:{addresses.tls_port}"
    known = f"ssl_certfile={certificates}/client.crt&ssl_keyfile={certificates}/client.key"
    trusted = f"ssl_ca_certs={certificates}/ca.crt"
    assert call(f"rediss://{place}?{known}&{trusted}", "PING") == b"PONG"
    assert call(f"rediss://{place}?{known}&ssl_cert_reqs=none", "PING") == b"PONG"
    by_name = f"rediss://localhost:{addresses.tls_port}?{known}&{trusted}"
    assert call(f"{by_name}&ssl_check_hostname=no", "PING") == b"PONG"
    for url, text in {
        f"rediss://{place}?{known}": "certificate that is not trusted",
        by_name: "certificate that is not trusted",
        f"rediss://{place}?{trusted}": "cannot be reached",
    }.items():
        with pytest.raises(StoreUnreachable, match=text):
            call(url, "PING")


def test_errors_have_the_servers_own_text_whatever_the_connection(address: Address, addresses: Addresses) -> None:
    """redis-py removes the error code from errors that it knows."""
    channel = Channel(address, HANG_SECONDS)
    channel.call("SET", "text", "a")
    for command, text in {
        ("EVALSHA", "0" * 40, "0"): "NOSCRIPT No matching script",
        ("LPUSH", "text", "b"): "WRONGTYPE Operation against a key",
        ("AUTH", "me", "wrong"): "WRONGPASS invalid username-password pair",
        ("FCALL", "none", "0"): "ERR Function not found",
    }.items():
        with pytest.raises((ResponseError, StoreUnreachable), match=text):
            channel.call(*command)
    channel.disconnect()


def test_a_login_that_tls_carries_is_refused_in_the_same_words(addresses: Addresses) -> None:
    with_user = addresses.encrypted.replace("rediss://", "rediss://me:{}@")
    assert call(with_user.format(quote(SECRET, safe="")) + "&db=3", "ACL", "WHOAMI") == b"me"
    with pytest.raises(StoreUnreachable, match="refuses the password") as refused:
        call(with_user.format("wrong"), "PING")
    assert not refused.value.healing


@pytest.mark.parametrize("url", GOOD)
def test_urls_have_the_same_meaning_as_for_redis_py(url: str) -> None:
    expected = dict(parse_url(url))
    target = urls.target(url)
    assert target.socket == expected.get("path", "")
    assert target.host == expected.get("host", "")
    assert target.port == expected.get("port", 6379)
    assert target.database == expected.get("db", 0)
    assert (target.username, target.password) == (expected.get("username", ""), expected.get("password", ""))
    if target.tls is not None:
        assert target.tls.ca_file == expected["ssl_ca_certs"]
        assert (target.tls.verify, target.tls.check_hostname) == (expected["ssl_cert_reqs"], False)


@pytest.mark.parametrize(
    "command", [("SET", "k", b"\x00\r\n"), ("XADD", "s", "*", "f", -12), ("ECHO", ""), ("ECHO", "\u00fc" * 70_000)]
)
def test_any_command_and_any_reply_arrive_complete(address: Address, command: tuple[str | bytes | int, ...]) -> None:
    """The replies to the longest ECHO exceed one read."""
    channel = Channel(address, HANG_SECONDS)
    replies = channel.calls([command, command, ("LRANGE", "none", 0, -1), ("GET", "none"), ("DBSIZE",)])
    channel.disconnect()
    if command[0] == "ECHO":
        assert replies[:2] == [str(command[1]).encode()] * 2
    assert replies[2:4] == [[], None]
    assert isinstance(replies[4], int)


def test_an_error_among_several_replies_is_raised_after_all_are_read(address: Address) -> None:
    channel = Channel(address, HANG_SECONDS)
    with pytest.raises(ResponseError, match="unknown command 'NONE'"):
        channel.calls([("ECHO", "a"), ("NONE",), ("LPUSH", "k"), ("ECHO", "b")])
    before = channel.call("CLIENT", "ID")
    assert channel.call("ECHO", "c") == b"c"
    assert channel.call("CLIENT", "ID") == before, "the connection was replaced"
    channel.disconnect()


def test_a_late_reply_is_never_taken_for_that_of_another_call(address: Address) -> None:
    wire = address.connection(HANG_SECONDS)
    wire.send(pack("BLPOP", "none", "0"))
    with pytest.raises(ReplyLate):
        wire.receive(0.01)
    assert not wire.connected
    wire.send(pack("ECHO", "next"))
    assert wire.receive() == b"next"
    wire.close()


def test_closing_a_connection_ends_a_wait_on_it(addresses: Addresses, address: Address) -> None:
    wire = address.connection(HANG_SECONDS)
    wire.send(pack("CLIENT", "ID"))
    number = wire.receive()
    wire.send(pack("BLPOP", "none", "0"))
    ended: list[RedisError] = []

    def wait() -> None:
        try:
            wire.receive()
        except RedisError as error:
            ended.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    client = addresses.server.client()
    wait_until(lambda: any(one["id"] == str(number) and "b" in one["flags"] for one in client.client_list()), "a wait")
    wire.close()
    waiting.join(HANG_SECONDS)
    assert [type(error) for error in ended] == [ConnectionLost]


@pytest.mark.parametrize(
    "url",
    [
        *("unix:///nowhere/sock", "unix:///" + "x" * 200, "unix:///a%00b"),
        *("redis://127.0.0.1:1", "redis://" + "x" * 70),
        *("rediss://127.0.0.1:1", "rediss://" + "x" * 70, "rediss://127.0.0.1:1?ssl_ca_certs=/nowhere/ca.crt"),
    ],
)
def test_an_unreachable_server_is_an_error_that_may_heal(url: str) -> None:
    with pytest.raises(StoreUnreachable, match="cannot be reached") as caught:
        call(url, "PING")
    assert caught.value.healing


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("NOAUTH Authentication required.", LoginRefused),
        ("WRONGPASS invalid username-password pair or user is disabled.", LoginRefused),
        ("ERR AUTH <password> called without any password configured for the default user.", LoginRefused),
        ("LOADING Redis is loading the dataset in memory", ConnectionLost),
        ("ERR max number of clients reached", ConnectionLost),
        ("NOPERM this user has no permissions", ResponseError),
        ("READONLY You can't write against a read only replica.", ResponseError),
        ("ERR something", ResponseError),
    ],
)
def test_an_error_reply_ends_the_connection_only_if_the_server_does_not_serve_it(
    text: str, meaning: type[RedisError]
) -> None:
    assert (type(replied(text)), str(replied(text))) == (meaning, text)
