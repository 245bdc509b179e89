"""The page of a log whose beginning is in the archive, in a real Redis and real archive files."""

import shutil
from pathlib import Path

from tests.cli.support.log_owner import LogOwner
from tests.cli.support.written_node import columns
from tests.support.page_parts import parts, rows


def test_the_page_has_the_archived_part_too(owner: LogOwner, tmp_path: Path) -> None:
    for name in ("a", "b"):
        owner.accept(name)
    archived = owner.fill()
    owner.archive_and_trim(archived)
    last = owner.accept("c")
    file = tmp_path / "page.html"
    result = owner.run("replay", "--html", str(file))
    assert (result.status, result.errors) == (0, "")
    found = parts(file.read_text(encoding="utf-8"))
    assert found["summary"]["entries"] == last.n > archived.n > 100
    for n in (2, archived.n, last.n):
        printed = columns(owner.run("get", "pods", "-A", "--no-headers", "--at", f"#{n}").output)
        assert sorted(rows(found, "pod", n)) == [f"{row[0]}/{row[1]}" for row in printed] != []


def test_without_the_archive_there_is_one_error_line_and_no_page(owner: LogOwner, tmp_path: Path) -> None:
    owner.accept("a")
    owner.archive_and_trim(owner.fill())
    shutil.rmtree(owner.root / "archive")
    page = tmp_path / "page.html"
    result = owner.run("replay", "--html", str(page))
    assert (result.status, result.output) == (1, "")
    assert "the archive files are not here" in result.errors
    assert result.errors.count("\n") == 1
    assert not page.exists()
