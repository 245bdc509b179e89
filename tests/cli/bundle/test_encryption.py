"""Bundles are encrypted and decrypted by the real `age` and `gpg`."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from chronolet.cli.bundle import encryption
from tests.cli.support.written_node import Result, WrittenNode

needs_age = pytest.mark.skipif(shutil.which("age") is None, reason="age is not installed")
needs_gpg = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")


class AgeKey(NamedTuple):
    file: Path
    recipient: str


def age_key(folder: Path, name: str) -> AgeKey:
    file = folder / name
    done = subprocess.run(["age-keygen", "-o", file], capture_output=True, text=True, check=True)
    return AgeKey(file, done.stderr.split()[-1])


@pytest.fixture
def key(tmp_path: Path) -> AgeKey:
    return age_key(tmp_path, "key")


@pytest.fixture
def gpg(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A new key ring with one key without a passphrase; its fingerprint."""
    home = tmp_path_factory.mktemp("g")
    home.chmod(0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    quick = ("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "Joe <joe@example.com>", "future-default")
    subprocess.run(quick, capture_output=True, check=True)
    listed = subprocess.run(["gpg", "--list-keys", "--with-colons"], capture_output=True, text=True, check=True)
    yield next(line.split(":")[9] for line in listed.stdout.splitlines() if line.startswith("fpr"))
    subprocess.run(["gpgconf", "--kill", "all"], capture_output=True, check=True)


def saved(node: WrittenNode, path: Path, *recipients: str) -> Result:
    return node.run("bundle", "save", str(path), *(word for one in recipients for word in ("--encrypt-to", one)))


def opened(node: WrittenNode, path: Path, *keys: Path) -> Result:
    identities = [word for one in keys for word in ("--identity", str(one))]
    return node.run("bundle", "open", *identities, str(path), "get", "pods")


@needs_age
def test_age_encrypts_for_each_recipient(node: WrittenNode, tmp_path: Path, key: AgeKey) -> None:
    path, other, stranger = tmp_path / "x", age_key(tmp_path, "other"), age_key(tmp_path, "stranger")
    assert saved(node, path, key.recipient, other.recipient).status == 0
    assert path.read_bytes().startswith(b"age-encryption.org/v1\n")
    assert b"chronolet" not in path.read_bytes()
    expected = node.run("get", "pods")
    assert opened(node, path, key.file) == opened(node, path, other.file) == expected
    decrypted = subprocess.run(["age", "-d", "-i", key.file, path], capture_output=True, check=True).stdout
    (tmp_path / "plain").write_bytes(decrypted)
    assert opened(node, tmp_path / "plain") == expected
    refused = opened(node, path, stranger.file)
    assert refused.status == 1
    assert refused.errors.startswith(f"error: {path}: not decrypted: age: error: no identity matched")


@needs_age
def test_an_encrypted_bundle_needs_a_key(node: WrittenNode, tmp_path: Path, key: AgeKey) -> None:
    path = tmp_path / "x"
    assert saved(node, path, key.recipient).status == 0
    expected = f"error: {path}: encrypted with age: name the file with your key with --identity\n"
    assert opened(node, path) == Result("", expected, 1)


@needs_age
def test_what_no_reader_would_accept_is_named_before_it_is_encrypted(
    node: WrittenNode, tmp_path: Path, key: AgeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chronolet.history.bundle.parts.LARGEST_ENTRY", 300)
    path = tmp_path / "x"
    result = saved(node, path, key.recipient)
    assert result.errors.startswith(f"error: {path}: not written, because no reader would accept it: ")
    assert not path.exists()


@needs_age
def test_an_encrypted_bundle_is_anonymised(node: WrittenNode, tmp_path: Path, key: AgeKey) -> None:
    path, other = tmp_path / "x", tmp_path / "y"
    assert saved(node, path, key.recipient).status == 0
    assert node.run("bundle", "anonymise", "--identity", str(key.file), str(path), str(other)).status == 0
    assert opened(node, other).status == 0


@needs_age
@pytest.mark.parametrize("size", [30, 200, 1_000])
def test_a_truncated_encrypted_file_is_refused(node: WrittenNode, tmp_path: Path, key: AgeKey, size: int) -> None:
    path = tmp_path / "x"
    assert saved(node, path, key.recipient).status == 0
    path.write_bytes(path.read_bytes()[:size])
    result = opened(node, path, key.file)
    assert result.status == 1
    assert result.errors.startswith(f"error: {path}: not decrypted: age: error: ")


@needs_gpg
def test_gpg_encrypts_for_a_fingerprint(node: WrittenNode, tmp_path: Path, gpg: str) -> None:
    path = tmp_path / "x"
    assert saved(node, path, gpg) == Result(saved(node, tmp_path / "y", gpg).output.replace("/y:", "/x:"), "", 0)
    assert b"chronolet" not in path.read_bytes()
    assert opened(node, path) == node.run("get", "pods")


@needs_gpg
def test_gpg_encrypts_for_an_address_with_a_trusted_key(node: WrittenNode, tmp_path: Path, gpg: str) -> None:
    assert saved(node, tmp_path / "x", "joe@example.com").status == 0
    assert opened(node, tmp_path / "x") == node.run("get", "pods")


@needs_gpg
def test_a_message_in_armour_is_read(node: WrittenNode, tmp_path: Path, gpg: str) -> None:
    plain, path = tmp_path / "plain", tmp_path / "x"
    assert node.run("bundle", "save", str(plain)).status == 0
    armour: list[str | Path] = [
        "gpg",
        "--batch",
        "--armor",
        "--trust-model",
        "always",
        "--recipient",
        gpg,
        "--output",
        path,
        "--encrypt",
        plain,
    ]
    subprocess.run(armour, check=True)
    assert opened(node, path) == opened(node, plain)


@needs_gpg
def test_a_message_that_grows_without_end_is_not_read(
    node: WrittenNode, tmp_path: Path, gpg: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gpg compresses, so a small message may have any size."""
    plain, path = tmp_path / "plain", tmp_path / "x"
    plain.write_bytes(bytes(64 * 1024 * 1024))
    command: list[str | Path] = [
        "gpg",
        "--batch",
        "--trust-model",
        "always",
        "--recipient",
        gpg,
        "--output",
        path,
        "--encrypt",
        plain,
    ]
    subprocess.run(command, check=True)
    assert path.stat().st_size < 1024 * 1024
    monkeypatch.setattr(encryption, "LARGEST", 8 * 1024 * 1024)
    result = opened(node, path)
    assert result.status == 1
    assert "has more than 8388608 bytes when decrypted" in result.errors


FAILURES = {
    "an unknown key of gpg": (("nobody@example.com",), "not encrypted for nobody@example.com: gpg: "),
    "an invalid key of age": (("age1abc",), "not encrypted for age1abc: age: error: "),
    "both programs": (("age1abc", "joe@example.com"), "--encrypt-to: found recipients of age and of gpg"),
}


@needs_age
@needs_gpg
@pytest.mark.parametrize(("recipients", "problem"), FAILURES.values(), ids=FAILURES)
def test_a_bundle_is_not_written_unencrypted(
    node: WrittenNode, tmp_path: Path, gpg: str, recipients: tuple[str, ...], problem: str
) -> None:
    result = saved(node, tmp_path / "x", *recipients)
    assert result.status == 1
    assert f"error: {problem}" in result.errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("recipient", "program"), [("age1abc", "age"), ("joe@example.com", "gpg")])
def test_a_missing_program_is_named(
    node: WrittenNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipient: str, program: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = saved(node, tmp_path / "x", recipient)
    assert result == Result(
        "", f"error: {program} is not installed: install it, or use the other one of age and gpg\n", 1
    )
    assert list(tmp_path.iterdir()) == []
