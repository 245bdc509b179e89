"""Archive files in a bucket of an S3-compatible service, below `<prefix>/<run>/`.

Input: a URL `s3://BUCKET[/PREFIX]`, the run; endpoint, region and credentials from the usual AWS variables or the
machine's role. Output: an `ArchiveStorage`. The service stores an object whole or not at all. Next:
`kernel.log.archive`. The client is obstore (docs/adr/0036), which is imported only here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn
from urllib.parse import urlsplit

CONNECT_SECONDS = 5
READ_SECONDS = 30
_RETRY_SECONDS = 20
_RETRIES = 3
_CHUNK = 64 * 1024
_SOME = 5
_REPLY_CHARACTERS = 400


class BucketStorage:
    """The archive files of one run, as objects in a bucket."""

    def __init__(self, url: str, run: str) -> None:
        parts = urlsplit(url)
        self._bucket = parts.netloc
        self._base = parts.path.strip("/")
        self._prefix = f"{self._base}/{run}/".lstrip("/")
        self._store: Any = None

    def names(self) -> Sequence[str]:
        """See `ArchiveStorage`."""
        with self._talking("list files"):
            return [name for name, _ in self._below(self._prefix) if "/" not in name]

    def stamps(self) -> Mapping[str, str]:
        """See `ArchiveStorage`."""
        with self._talking("list files"):
            return {
                name: f"{one['size']}-{one['e_tag']}-{one['last_modified']}"
                for name, one in self._below(self._prefix)
                if "/" not in name
            }

    @contextmanager
    def opened(self, name: str) -> Iterator[_Object]:
        """See `ArchiveStorage`."""
        with self._talking("read", name):
            found = _client().get(self._connected(), self._prefix + name)
        yield _Object(self, name, iter(found.stream(min_chunk_size=_CHUNK)))

    def part(self, name: str, offset: int, size: int) -> bytes:
        """See `ArchiveStorage`."""
        with self._talking("read", name):
            return bytes(_client().get_range(self._connected(), self._prefix + name, start=offset, length=size))

    def put(self, name: str, content: bytes) -> None:
        """See `ArchiveStorage`."""
        with self._talking("write", name):
            _client().put(self._connected(), self._prefix + name, content)

    def set_aside(self, name: str) -> None:
        """See `ArchiveStorage`. The client copies the object, then deletes it: a crash in between leaves both."""
        with self._talking("rename", name):
            _client().rename(self._connected(), self._prefix + name, f"{self._prefix}{name}.damaged")

    def delete(self, name: str) -> None:
        """See `ArchiveStorage`."""
        with self._talking("delete", name):
            _client().delete(self._connected(), self._prefix + name)

    def place(self, name: str = "") -> str:
        """See `ArchiveStorage`."""
        return f"s3://{self._bucket}/{self._prefix}{name}"

    def other_runs(self) -> Sequence[str]:
        """See `ArchiveStorage`."""
        with self._talking("list files"):
            found = _client().list_with_delimiter(self._connected(), self._base or None)["common_prefixes"]
        runs = sorted(one.rstrip("/").rpartition("/")[2] for one in found if f"{one.rstrip('/')}/" != self._prefix)
        return runs[:_SOME]

    def _below(self, prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for page in _client().list(self._connected(), prefix.rstrip("/")):
            yield from ((one["path"].removeprefix(prefix), one) for one in page)

    def _connected(self) -> Any:
        if self._store is None:
            from obstore.store import S3Store  # noqa: PLC0415 - see _client

            self._store = S3Store(
                self._bucket,
                client_options={
                    "allow_http": True,  # the endpoint's URL says whether it uses TLS
                    "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                    "read_timeout": timedelta(seconds=READ_SECONDS),
                },
                retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)},
            )
        return self._store

    @contextmanager
    def _talking(self, what: str, name: str = "") -> Iterator[None]:
        """Translate the client's errors into OSError."""
        try:
            yield
        except Exception as error:
            if not isinstance(error, _errors()):
                raise
            self.fail(what, name, error)

    def fail(self, what: str, name: str, error: Exception) -> NoReturn:
        """Raise an OSError that says what could not be done, where, and what the service replied."""
        reply = " ".join(str(error).partition("\n\nDebug source")[0].split())[:_REPLY_CHARACTERS]
        raise OSError(f"{self.place(name)}: cannot {what}: {reply}") from error


class _Object:
    """An object that is read as it arrives."""

    def __init__(self, storage: BucketStorage, name: str, chunks: Iterator[Any]) -> None:
        self._storage = storage
        self._name = name
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        """See `Readable`."""
        while len(self._rest) < size:
            try:
                chunk = next(self._chunks, None)
            except Exception as error:
                if not isinstance(error, _errors()):
                    raise
                self._storage.fail("read", self._name, error)
            if chunk is None:
                break
            self._rest += bytes(chunk)
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


def _client() -> Any:
    """Return the client library, loaded only for an archive in a bucket. Raises OSError if it is not installed."""
    try:
        import obstore  # noqa: PLC0415 - see above
    except ImportError as error:
        raise OSError(
            "an archive in a bucket needs the package obstore: install chronolet[s3], or name a folder as --archive"
        ) from error
    return obstore


def _errors() -> tuple[type[Exception], ...]:
    from obstore.exceptions import BaseError  # noqa: PLC0415 - see _client

    # An absent object or bucket is a FileNotFoundError; a setting that the client refuses is a ValueError.
    return (BaseError, FileNotFoundError, ValueError)
