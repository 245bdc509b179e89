"""Access to the pages: host names, origins, tokens, certificates, and addresses that need TLS and authentication."""

import http.client
import ssl
import subprocess
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.node.health import Health
from chronolet.node.http import access
from chronolet.node.http.guard import Guard, Rejected, Request
from chronolet.node.http.server import HttpServer, Response, health_pages
from chronolet.node.settings.http import is_loopback
from chronolet.node.settings.resolving import resolve
from chronolet.node.settings.values import SettingsError
from tests.support.scratch import HANG_SECONDS

GUARD = Guard(names=frozenset({"node1", "node1.example.org"}))


def judged(guard: Guard, target: str, *headers: tuple[str, str], certified: bool = False) -> Request | Rejected:
    message = Message()
    for name, value in headers:
        message[name] = value
    return guard.request(target, message, "10.0.0.7", certified=certified)


def status(guard: Guard, target: str, *headers: tuple[str, str], certified: bool = False) -> int:
    found = judged(guard, target, *headers, certified=certified)
    return found.status if isinstance(found, Rejected) else 200


@pytest.mark.parametrize(
    "host",
    [
        *["localhost", "LocalHost:10255", "127.0.0.1", "127.1.2.3:80", "[::1]:10255", "[::1]", "10.0.0.7:1"],
        *["node1", "NODE1.example.org.:443", "localhost."],
    ],
)
def test_names_of_this_node(host: str) -> None:
    assert status(GUARD, "/pods", ("Host", host), ("Origin", f"https://{host}")) == 200
    assert status(GUARD, f"http://{host}/pods", ("Host", host)) == 200


@pytest.mark.parametrize(
    "host",
    [
        *["evil.example", "localhost.evil.example", "evil.example:10255", "10.0.0.8", "0", "", "[::2]", "node10"],
        *["localhost@evil.example", "localhost evil", "[::1", "localhost:x", "[localhost]", "127.0.0.1.evil.example"],
    ],
)
def test_names_of_other_hosts(host: str) -> None:
    assert status(GUARD, "/pods", ("Host", host)) == 421
    assert status(GUARD, "/healthz", ("Host", "localhost"), ("Origin", f"http://{host}")) == 403
    assert status(Guard(names=frozenset("*")), "/pods", ("Host", host)) == 200


def test_a_refusal_names_the_found_value_and_the_remedy() -> None:
    assert judged(GUARD, "/pods", ("Host", "evil.example")) == Rejected(
        421,
        "Host 'evil.example' is not one of this node's names (10.0.0.7, localhost, node1, node1.example.org); "
        "add it with --http-allowed-hosts",
    )
    assert judged(GUARD, "/pods", ("Origin", "null")) == Rejected(
        403, "Origin 'null' is another site, whose pages must not read this one"
    )


@given(st.text(), st.text(st.characters(max_codepoint=255)), st.text(st.characters(max_codepoint=255)))
def test_any_request_gets_a_verdict(target: str, host: str, origin: str) -> None:
    assert status(GUARD, target, ("Host", host.replace("\n", "").replace("\r", ""))) in (200, 400, 421)
    assert status(GUARD, target, ("Origin", origin.replace("\n", "").replace("\r", ""))) in (200, 400, 403, 421)


def test_a_token_or_a_certificate_gives_access_and_health_needs_none() -> None:
    guard = Guard(token="s3cret", certificates=True)
    assert status(guard, "/healthz") == status(guard, "/healthz/?verbose") == 200
    assert judged(guard, "/pods") == Rejected(
        401, "unauthorized: expected Authorization: Bearer TOKEN or a client certificate"
    )
    assert status(guard, "/pods", ("Authorization", "Bearer s3cret")) == 200
    assert status(guard, "/pods", certified=True) == 200
    for wrong in ("Bearer s3cre", "Bearer s3cret2", "Bearer \u00ff", "Basic s3cret", "Bearer", "s3cret", ""):
        assert status(guard, "/pods", ("Authorization", wrong)) == 401
    twice = ("Authorization", "Bearer s3cret")
    assert status(guard, "/pods", twice, twice) == 401
    assert status(Guard(certificates=True), "/pods", ("Authorization", "Bearer ")) == 401
    assert status(Guard(token="s3cret"), "/pods", certified=True) == 401


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "node1"])
def test_a_reachable_address_is_refused_without_protection(address: str) -> None:
    certificate = {"tls_cert_file": "c", "tls_private_key_file": "k"}
    for flags in ({}, certificate, {"http_token_file": "t"}):
        with pytest.raises(SettingsError, match=r"other machines could read every pod there, expected --tls"):
            resolve({"address": address, **flags}, {})
    for more in ({"client_ca_file": "ca"}, {"http_token_file": "t"}):
        assert resolve({"address": address, **certificate, **more}, {})[0].address == address
    assert resolve({"address": address, "port": "0"}, {})[0].http_address == ""


def test_contradictory_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match="found one of them, expected both or neither"):
        resolve({"tls_cert_file": "c"}, {})
    with pytest.raises(SettingsError, match="client certificates need TLS"):
        resolve({"client_ca_file": "c"}, {})
    with pytest.raises(SettingsError, match=r"found 'node:80', expected a name such as .*, without a port"):
        resolve({"http_allowed_hosts": "a,node:80"}, {})
    found = resolve({"http_allowed_hosts": "A.example,::1,*"}, {})[0].http_allowed_hosts
    assert found == ("a.example", "::1", "*")
    assert [is_loopback(one) for one in ("127.0.0.2", "::1", "localhost", "10.0.0.1")] == [True, True, True, False]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the authority `ca`, certificates `server` and `client` signed by it, and a self-signed `other`."""
    folder = tmp_path_factory.mktemp("certificates")

    def made(name: str, *more: str) -> None:
        request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        files = ["-keyout", f"{name}.key", "-out", f"{name}.crt", "-days", "2", "-subj", f"/CN={name}"]
        subprocess.run([*request, *files, *more], cwd=folder, check=True, capture_output=True, timeout=HANG_SECONDS)

    made("ca")
    made("other")
    for name in ("server", "client"):
        made(name, "-CA", "ca.crt", "-CAkey", "ca.key", "-addext", "subjectAltName=IP:127.0.0.1")
    return folder


@pytest.fixture
def server(certificates: Path) -> Iterator[HttpServer]:
    (certificates / "token").write_text("s3cret\n")
    settings, _ = resolve(
        {
            "tls_cert_file": str(certificates / "server.crt"),
            "tls_private_key_file": str(certificates / "server.key"),
            "client_ca_file": str(certificates / "ca.crt"),
            "http_token_file": str(certificates / "token"),
        },
        {},
    )
    pages = {**health_pages(Health()), "/pods": lambda _: Response(200, b"pods")}
    guard, tls = access.guard(settings), access.tls(settings)
    served = HttpServer("127.0.0.1", 0, pages, guard=guard, tls=tls, head_seconds=HANG_SECONDS)
    served.start()
    yield served
    served.stop()


def get(server: HttpServer, ca: Path, path: str, client: str = "", **headers: str) -> tuple[int, bytes]:
    context = ssl.create_default_context(cafile=str(ca / "ca.crt"))
    if client:
        context.load_cert_chain(ca / f"{client}.crt", ca / f"{client}.key")
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=HANG_SECONDS, context=context)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_over_tls_a_token_or_a_valid_certificate_is_needed(server: HttpServer, certificates: Path) -> None:
    assert get(server, certificates, "/healthz") == (200, b"ok")
    assert get(server, certificates, "/pods")[0] == 401
    assert get(server, certificates, "/pods", Authorization="Bearer wrong")[0] == 401
    assert get(server, certificates, "/pods", Authorization="Bearer s3cret") == (200, b"pods")
    assert get(server, certificates, "/pods", "client") == (200, b"pods")
    with pytest.raises(OSError):  # noqa: PT011 - either a TLS alert or a closed connection
        get(server, certificates, "/pods", "other")


def test_a_client_without_a_tls_handshake_delays_no_other(server: HttpServer, certificates: Path) -> None:
    silent = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_SECONDS) for _ in range(40)]
    for one in silent:
        one.connect()
    assert get(server, certificates, "/healthz") == (200, b"ok")
    for one in silent:
        one.close()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"tls_cert_file": "nothing"}, "--tls-cert-file"),
        ({"tls_private_key_file": "client.key"}, "--tls-private-key-file"),
        ({"client_ca_file": "ca.key"}, "--client-ca-file"),
    ],
)
def test_unusable_files_are_named(certificates: Path, change: dict[str, str], named: str) -> None:
    files: dict[str, Any] = {"tls_cert_file": "server.crt", "tls_private_key_file": "server.key"}
    settings, _ = resolve({name: str(certificates / file) for name, file in (files | change).items()}, {})
    with pytest.raises(SettingsError, match=named) as error:
        access.tls(settings)
    assert "cannot be used" in str(error.value)
