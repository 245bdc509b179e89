"""One encrypted connection to Redis (`rediss://`), made by redis-py, which handles TLS, certificates and the login.

Input: a server's `Target` with `tls`, packed commands. Output: raw replies, or a `RedisError`, as for `wire.Wire`,
which has the same methods. Next: `connection`. redis-py is loaded only for such a URL, because it takes 6 MiB and 0.05
s of CPU (docs/adr/0033). Its retries and health checks are off: the kernel decides what may be sent twice.
"""

from __future__ import annotations

from typing import Any

from redis import exceptions
from redis.connection import SSLConnection

from chronolet.kernel.storage.redis.errors import ConnectionLost, RedisError, ReplyLate, ResponseError, replied
from chronolet.kernel.storage.redis.urls import Target
from chronolet.kernel.storage.redis.wire import CONNECT_SECONDS, KEEPALIVE


class EncryptedWire:
    """An encrypted connection to Redis, open or closed. Any error except an error reply closes it. `timeout`: for how
    many seconds the server may be silent.
    """

    def __init__(self, target: Target, timeout: float) -> None:
        tls = target.tls
        assert tls is not None  # noqa: S101 - the caller has checked
        self._timeout = timeout
        self._connection = SSLConnection(
            host=target.host,
            port=target.port,
            db=target.database,
            username=target.username or None,
            password=target.password or None,
            protocol=2,
            driver_info=None,
            socket_timeout=timeout,
            socket_connect_timeout=min(timeout, CONNECT_SECONDS),
            socket_keepalive=True,
            socket_keepalive_options=dict(KEEPALIVE),
            ssl_ca_certs=tls.ca_file or None,
            ssl_ca_path=tls.ca_folder or None,
            # One file may contain both certificate and key.
            ssl_certfile=tls.certificate or tls.key or None,
            ssl_keyfile=tls.key or None,
            ssl_password=tls.key_password or None,
            ssl_cert_reqs=tls.verify,
            ssl_check_hostname=tls.check_hostname,
        )

    @property
    def connected(self) -> bool:
        """Whether the connection is open. If the server has closed it, that is noticed only at the next use."""
        return bool(self._connection.is_connected)

    def send(self, packed: bytes) -> None:
        """Send bytes, opening the connection if necessary. Raises ConnectionLost."""
        try:
            self._connection.send_packed_command([packed], check_health=False)  # type: ignore[no-untyped-call]
        except exceptions.RedisError as error:
            self.close()
            raise _lost(error) from error
        # An invalid host name raises ValueError. A close by another thread leaves redis-py without its socket.
        except (OSError, ValueError, AttributeError) as error:
            self.close()
            raise ConnectionLost(str(error)) from error

    def receive(self, timeout: float | None = None) -> Any:
        """Read one reply. An error reply is returned as a `ResponseError`, not raised. `timeout`: in seconds; if None,
        the time-out of the connection applies.

        Raises ConnectionLost, also if the server refuses to serve the connection.
        """
        try:
            return self._connection.read_response(
                disable_decoding=True, timeout=self._timeout if timeout is None else timeout
            )
        except exceptions.RedisError as error:
            ours = _translated(error)
            if isinstance(ours, ResponseError):
                return ours
            self.close()
            raise _lost(error) from error
        except (OSError, ValueError, AttributeError) as error:  # as in `send`
            self.close()
            raise ConnectionLost(str(error)) from error

    def close(self) -> None:
        """Close the connection; the next use reopens it. A `receive` that is in progress on another thread raises
        ConnectionLost.
        """
        self._connection.disconnect()  # type: ignore[no-untyped-call]


def _translated(error: exceptions.RedisError) -> RedisError:
    """Return the kernel's exception for an error of redis-py, with the server's complete text: redis-py removes the
    error code.
    """
    code = getattr(error, "status_code", None)
    text = f"{code} {error}" if code else str(error)
    if isinstance(error, exceptions.TimeoutError):
        return ReplyLate(text)
    if code or isinstance(error, exceptions.ResponseError):
        return replied(text)
    return ConnectionLost(text)


def _lost(error: exceptions.RedisError) -> ConnectionLost:
    """Return a ConnectionLost for an error that has closed the connection, such as a refused login."""
    ours = _translated(error)
    return ours if isinstance(ours, ConnectionLost) else ConnectionLost(str(ours))
