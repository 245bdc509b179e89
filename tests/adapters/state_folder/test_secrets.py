"""Secrets in a state folder: complete or absent, readable only by their owner, under names that reveal nothing."""

import hashlib
import os
import stat
import time
from pathlib import Path

import pytest

from chronolet.adapters.state_folder.secrets import SecretFiles
from chronolet.ports.pods.secrets import Secret, SecretRefusal

SECRET = Secret(
    namespace="default", name="regcred", type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": b"{}"}
)


@pytest.fixture
def files(tmp_path: Path) -> SecretFiles:
    made = SecretFiles(tmp_path, "n", young_seconds=3600)
    made.prepare()
    return made


def folder(root: Path) -> Path:
    return root / "secrets"


def age(path: Path, seconds: float) -> None:
    past = time.time() - seconds
    os.utime(path, (past, past))


def test_a_kept_secret_is_read_and_listed(files: SecretFiles, tmp_path: Path) -> None:
    digest = files.keep(SECRET, "apply")
    assert files.keep(SECRET, "apply") == digest, "equal content is the same file"
    again = SecretFiles(tmp_path, "n")
    again.prepare()
    assert again.read(digest) == SECRET
    assert again.all() == [(SECRET, "apply", digest)]
    other = files.keep(SECRET, "file:/m/a.yaml")
    assert other != digest
    age(folder(tmp_path) / digest, -5)
    assert [one.digest for one in files.all()] == [other, digest], "the oldest first"


def test_only_the_owner_may_read(files: SecretFiles, tmp_path: Path) -> None:
    digest = files.keep(SECRET, "apply")
    for path, mode in (
        (folder(tmp_path), 0o700),
        (folder(tmp_path) / digest, 0o600),
        (folder(tmp_path) / "key", 0o600),
    ):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_digest_cannot_be_computed_by_others(files: SecretFiles, tmp_path: Path) -> None:
    digest = files.keep(SECRET, "apply")
    content = (folder(tmp_path) / digest).read_bytes()
    assert digest != hashlib.sha256(content).hexdigest()[:32]
    other = SecretFiles(tmp_path / "other", "n")
    other.prepare()
    assert other.keep(SECRET, "apply") != digest
    assert files.seal(b"a") != other.seal(b"a")


def test_without_the_state_folder_nothing_is_written(tmp_path: Path) -> None:
    stranger = SecretFiles(tmp_path, "n")
    with pytest.raises(SecretRefusal, match=r"No such file.*on the machine of node n"):
        stranger.keep(SECRET, "apply")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_another_node_is_left_alone(files: SecretFiles, tmp_path: Path) -> None:
    digest = files.keep(SECRET, "apply")
    other = SecretFiles(tmp_path, "m")
    with pytest.raises(SecretRefusal, match="belongs to node n, expected m"):
        other.keep(SECRET, "apply")
    other.prepare()
    assert other.all() == [], "secrets of another node are not listed"
    assert other.read(digest) == SECRET


def test_an_unreadable_secret_counts_as_absent(files: SecretFiles, tmp_path: Path) -> None:
    digest = files.keep(SECRET, "apply")
    assert files.read("0" * 32) is None
    assert files.read("../key") is None
    (folder(tmp_path) / digest).write_bytes(b"{")
    assert files.read(digest) is None
    assert files.all() == []


def test_only_old_and_unreferenced_secrets_are_unused(files: SecretFiles, tmp_path: Path) -> None:
    used, young, old, future = (files.keep(SECRET, source) for source in ("a", "b", "c", "d"))
    left = folder(tmp_path) / f".{old}-x_y1"
    left.write_bytes(b"half")
    for path, seconds in ((folder(tmp_path) / old, 3601), (left, 3601), (folder(tmp_path) / future, -3600)):
        age(path, seconds)
    age(folder(tmp_path) / used, 3601)
    age(folder(tmp_path) / "key", 3601)
    assert sorted(files.unused({used})) == sorted([old, left.name, future])
    for name in (old, left.name, old, "key", "../x"):
        files.remove(name)
    assert files.read(young) == SECRET
    assert files.unused({used}) == [future]
    assert (folder(tmp_path) / "key").exists()


def test_without_a_folder_there_are_no_secrets(tmp_path: Path) -> None:
    nothing = SecretFiles(tmp_path, "n")
    assert (nothing.all(), nothing.unused(()), nothing.read("0" * 32)) == ([], [], None)
    with pytest.raises(SecretRefusal, match="cannot be removed"):
        nothing.remove("0" * 32)
