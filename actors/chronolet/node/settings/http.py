"""The settings for the HTTP server, and a check that they are consistent.

Input: none. Output: part of the settings table; `SettingsError` if other machines could reach the server without TLS
and authentication. Next: `table`, `node.http.guard`. Source: cmd/kubelet/app/options (--address, --tls-cert-file, ...).
"""

from __future__ import annotations

import ipaddress
from pathlib import Path

from chronolet.node.settings.setting import Setting
from chronolet.node.settings.values import SettingsError, any_text, number, secret_file, text

ANY_HOST = "*"


def host_names(what: str, value: object) -> tuple[str, ...]:
    """Parse names or addresses without a port, comma-separated or as a list, which may be empty. `*` means any."""
    written = value if isinstance(value, list) else any_text(what, value).split(",")
    found = tuple(text(what, one).lower() for one in written if one)
    for one in found:
        if "/" in one or (":" in one and not _is_address(one)) or ("*" in one and one != ANY_HOST):
            raise SettingsError(f"{what}: found {one!r}, expected a name such as node1.example.org, without a port")
    return found


HTTP_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "address",
        "--address",
        "CHRONOLET_ADDRESS",
        "address the HTTP server listens on; other than loopback only with TLS and a token or client certificates "
        "[default: 127.0.0.1]",
        text,
        "address",
        "ADDRESS",
    ),
    Setting(
        "port",
        "--port",
        "CHRONOLET_PORT",
        "port of the HTTP server; 0 turns it off [default: 10255]",
        number(0, 65535),
        "readOnlyPort",
        "PORT",
    ),
    Setting(
        "http_allowed_hosts",
        "--http-allowed-hosts",
        "CHRONOLET_HTTP_ALLOWED_HOSTS",
        "host names that requests to the HTTP server may use, comma-separated, in addition to loopback names, its own "
        "address and the node's name; * for any [default: none]",
        host_names,
        metavar="NAMES",
    ),
    Setting(
        "tls_cert_file",
        "--tls-cert-file",
        "CHRONOLET_TLS_CERT_FILE",
        "PEM file with the HTTP server's certificate and its chain [default: none, no TLS]",
        any_text,
        "tlsCertFile",
        "PATH",
    ),
    Setting(
        "tls_private_key_file",
        "--tls-private-key-file",
        "CHRONOLET_TLS_PRIVATE_KEY_FILE",
        "PEM file with the private key for --tls-cert-file [default: none]",
        any_text,
        "tlsPrivateKeyFile",
        "PATH",
    ),
    Setting(
        "client_ca_file",
        "--client-ca-file",
        "CHRONOLET_CLIENT_CA_FILE",
        "PEM file with the certificate authorities whose client certificates may read every page [default: none]",
        any_text,
        "authentication.x509.clientCAFile",
        "PATH",
    ),
    Setting(
        "http_token_file",
        "--http-token-file",
        "CHRONOLET_HTTP_TOKEN_FILE",
        "file with the bearer token that requests need, except for /healthz [default: none]",
        secret_file,
        metavar="PATH",
    ),
)


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach a server at `address`."""
    if address.lower() == "localhost":
        return True
    return _is_address(address) and ipaddress.ip_address(address).is_loopback


def check_http(address: str, cert: str, key: str, client_ca: str, token: Path | None) -> None:
    """Raise SettingsError if the TLS settings are incomplete, or if the address is not loopback and TLS or client
    authentication is missing.
    """
    if bool(cert) != bool(key):
        raise SettingsError("--tls-cert-file and --tls-private-key-file: found one of them, expected both or neither")
    if client_ca and not cert:
        raise SettingsError("--client-ca-file: client certificates need TLS, expected --tls-cert-file as well")
    if not is_loopback(address) and not (cert and (client_ca or token)):
        raise SettingsError(
            f"--address {address}: other machines could read every pod there, expected --tls-cert-file, "
            "--tls-private-key-file, and --http-token-file or --client-ca-file as well, or --address 127.0.0.1"
        )


def _is_address(found: str) -> bool:
    try:
        ipaddress.ip_address(found)
    except ValueError:
        return False
    return True
