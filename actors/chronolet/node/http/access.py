"""Builds the access control of the node's pages from the settings: host names, token, certificates.

Input: settings. Output: a `Guard`, a TLS context; `SettingsError` for unusable files. Next: `main`.
"""

from __future__ import annotations

import socket
import ssl

from chronolet.node.http.guard import Guard
from chronolet.node.settings.table import Settings
from chronolet.node.settings.values import SettingsError, read_secret


def guard(settings: Settings) -> Guard:
    """Build the guard that decides which requests are answered. Reads the token file once. Raises SettingsError."""
    names = {settings.node, socket.gethostname(), settings.address, *settings.http_allowed_hosts}
    token = read_secret("--http-token-file", settings.http_token_file) if settings.http_token_file else ""
    return Guard(names=frozenset(one.lower() for one in names), token=token, certificates=bool(settings.client_ca_file))


def tls(settings: Settings) -> ssl.SSLContext | None:
    """Build the TLS context with the server's certificate and the accepted client CAs; None if the server uses plain
    HTTP. Reads the files once. Raises SettingsError.
    """
    if not settings.tls_cert_file:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    where = f"--tls-cert-file {settings.tls_cert_file}, --tls-private-key-file {settings.tls_private_key_file}"
    try:
        context.load_cert_chain(settings.tls_cert_file, settings.tls_private_key_file, _no_password)
        if settings.client_ca_file:
            where = f"--client-ca-file {settings.client_ca_file}"
            context.load_verify_locations(settings.client_ca_file)
            # Optional: /healthz and clients with a token need none. If a client presents a certificate, it is verified.
            context.verify_mode = ssl.CERT_OPTIONAL
    except (OSError, ValueError) as error:
        raise SettingsError(f"{where}: cannot be used: {error}; expected PEM files that belong together") from error
    return context


def _no_password() -> str:
    """Raise ValueError for an encrypted key: without this callback, OpenSSL would prompt on the terminal."""
    raise ValueError("the key is encrypted, expected one that is not")
