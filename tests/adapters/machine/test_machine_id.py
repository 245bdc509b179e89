"""The machine's id is read from a valid file; any other file is refused with an error that names it."""

import os
from pathlib import Path

import pytest

from chronolet.adapters.machine.machine_id import MachineIdUnknown, read_machine_id


def refusal(path: Path) -> str:
    with pytest.raises(MachineIdUnknown) as raised:
        read_machine_id(path)
    text = str(raised.value)
    assert text.startswith(f"--machine-id-file {path}: ")
    assert "systemd-machine-id-setup" in text
    return text


@pytest.mark.parametrize("content", ["0123456789abcdef0123456789abcdef\n", " 4c4c4544-0042 \n\n", "x"])
def test_an_id_is_read_without_white_space(tmp_path: Path, content: str) -> None:
    (tmp_path / "id").write_text(content)
    assert read_machine_id(tmp_path / "id") == content.strip()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"uninitialized\n", "first boot"),
        (b"one two", "found 'one two'"),
        (b"\xff\x00\x01", "found"),
        (b"a" * 10_000, "found"),
        (b"../../etc", "found"),
    ],
)
def test_other_content_is_refused(tmp_path: Path, content: bytes, found: str) -> None:
    (tmp_path / "id").write_bytes(content)
    assert found in refusal(tmp_path / "id")


def test_a_missing_file_a_folder_and_a_fifo_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "not found" in refusal(tmp_path / "none")
    assert "not a regular file" in refusal(tmp_path)
    assert "not a regular file" in refusal(tmp_path / "fifo")


def test_an_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`os.open` is replaced by a function that fails, because root may read every file."""

    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    assert "cannot be read: Permission denied" in refusal(tmp_path / "id")
