"""Encrypts and decrypts bundles with the programs `age` and `gpg`, where they are installed.

Input: a recipient, a stream. Output: a stream that writes through the program; or a decrypted temporary file. Next:
`save`, `open`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from chronolet.cli.errors import Failure

_AGE = re.compile(r"age1[a-z0-9]+|age1[a-z0-9]+1[a-z0-9]+|ssh-(?:rsa|ed25519) .+")
_FINGERPRINT = re.compile(r"(?:0x)?[0-9A-Fa-f]{40}|(?:0x)?[0-9A-Fa-f]{64}")
_AGE_BEGINS = (b"age-encryption.org/", b"-----BEGIN AGE ENCRYPTED FILE-----")
_GPG_BEGINS = (b"-----BEGIN PGP MESSAGE-----", b"\x84", b"\x85", b"\x8c", b"\xc1", b"\xc3")
_LONGEST_BEGIN = 34
LARGEST = 4 * 1024**3
"""The largest decrypted file, in bytes: gpg also decompresses, so a small file may grow without end."""
_PIECE = 1024 * 1024


@contextmanager
def encrypted(file: IO[bytes], recipients: Sequence[str]) -> Iterator[IO[bytes]]:
    """Return a stream whose content arrives encrypted in the file. All recipients must be of the same program."""
    kinds = {"age" if _AGE.fullmatch(one) else "gpg" for one in recipients}
    if len(kinds) > 1:
        raise Failure("--encrypt-to: found recipients of age and of gpg, expected those of one of them")
    arguments = _age(recipients) if kinds == {"age"} else _gpg(recipients)
    failed = f"not encrypted for {', '.join(recipients)}"
    with _started(arguments, stdin=subprocess.PIPE, stdout=file) as program:
        stream = program.process.stdin
        assert stream is not None  # noqa: S101 - it is a pipe
        try:
            yield stream
            stream.close()
        except BrokenPipeError:
            program.finish(failed)  # the program has ended: its error says why
            raise
        program.finish(failed)


def _age(recipients: Sequence[str]) -> list[str]:
    return ["age", "--encrypt", *(f"--recipient={one}" for one in recipients)]


def _gpg(recipients: Sequence[str]) -> list[str]:
    # A whole fingerprint says which key it is; for anything else, gpg requires a certified key.
    trust = ["--trust-model", "always"] if all(map(_FINGERPRINT.fullmatch, recipients)) else []
    named = [f"--recipient={one}" for one in recipients]
    return ["gpg", "--batch", "--quiet", "--compress-algo", "none", *trust, *named, "--encrypt"]


@contextmanager
def decrypted(path: Path, identities: Sequence[Path]) -> Iterator[IO[bytes] | None]:
    """Return a temporary file with the decrypted content; None if the file is not encrypted. `identities`: files with
    keys of age. Raises Failure.
    """
    try:
        with path.open("rb") as file:
            begin = file.read(_LONGEST_BEGIN)
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror or error}") from error
    if begin.startswith(_AGE_BEGINS):
        if not identities:
            raise Failure(f"{path}: encrypted with age: name the file with your key with --identity")
        arguments = ["age", "--decrypt", *(f"--identity={one}" for one in identities)]
    elif begin.startswith(_GPG_BEGINS):
        arguments = ["gpg", "--quiet", "--decrypt"]
    else:
        yield None
        return
    # The programs read the file from their input: its name could be taken for an option.
    with tempfile.TemporaryFile() as content, path.open("rb") as file:
        with _started(arguments, stdin=file, stdout=subprocess.PIPE) as program:
            _copy(program, content, path)
            program.finish(f"{path}: not decrypted")
        content.seek(0)
        yield content


class _Program(NamedTuple):
    """A running program, and the file that it writes its errors to."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    def finish(self, failed: str) -> None:
        """Wait for the program's end. Raises Failure with `failed` and the program's message if it failed."""
        if self.process.wait() == 0:
            return
        self.errors.seek(0)
        lines = self.errors.read(_PIECE).decode(errors="replace").split("\n")
        message = "; ".join(line.strip() for line in lines if line.strip()) or f"exit status {self.process.returncode}"
        raise Failure(f"{failed}: {message}")


def _copy(program: _Program, content: IO[bytes], path: Path) -> None:
    stream = program.process.stdout
    assert stream is not None  # noqa: S101 - it is a pipe
    size = 0
    while piece := stream.read(_PIECE):
        size += len(piece)
        if size > LARGEST:
            raise Failure(f"{path}: has more than {LARGEST} bytes when decrypted, expected a bundle")
        content.write(piece)


@contextmanager
def _started(arguments: list[str], *, stdin: int | IO[bytes], stdout: int | IO[bytes]) -> Iterator[_Program]:
    if shutil.which(arguments[0]) is None:
        raise Failure(f"{arguments[0]} is not installed: install it, or use the other one of age and gpg")
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(arguments, stdin=stdin, stdout=stdout, stderr=errors) as process,
    ):
        try:
            yield _Program(process, errors)
        finally:
            if process.poll() is None:
                process.kill()
            if process.stdin is not None:
                with suppress(BrokenPipeError):  # it would hide why the block failed
                    process.stdin.close()
