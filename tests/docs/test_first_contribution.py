"""The walkthrough of a first contribution in CONTRIBUTING.md fits the code: its patches apply and its test passes."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commandlines import here_documents
from tests.docs.markdown import ROOT, Page

DOCUMENTS = [
    document
    for block in Page(ROOT / "CONTRIBUTING.md").blocks()
    if block.language == "sh"
    for document in here_documents(block.text)
]
PATCHES = [text for command, text in DOCUMENTS if command == "git apply"]
FILES = {Path(command.removeprefix("cat >")): text for command, text in DOCUMENTS if command.startswith("cat >")}


def applied(patch: str, root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "apply", *options], cwd=root, input=patch, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the folders that the walkthrough changes. Its changes are reverted if they were made in this clone."""
    for name in ("actors/chronolet", "schemas/chronolet_schemas", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for patch in PATCHES:
        applied(patch, tmp_path, "--reverse")
    return tmp_path


def test_the_walk_has_files_and_patches() -> None:
    assert len(FILES) == 1
    assert len(PATCHES) == 2


def test_its_test_fails_before_its_patches_and_passes_after_them(copy: Path) -> None:
    for name, text in FILES.items():
        ast.parse(text)
        (copy / name).parent.mkdir(parents=True)
        (copy / name).write_text(text)
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", *map(str, FILES)]
    environment = {"PYTHONPATH": f"{copy}/actors:{copy}/schemas"}
    before = subprocess.run(run, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert "AssertionError" in before.stdout
    for patch in PATCHES:
        outcome = applied(patch, copy)
        assert outcome.returncode == 0, outcome.stderr
    after = subprocess.run(run, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert after.returncode == 0, after.stdout + after.stderr


def test_a_patch_that_does_not_fit_is_found(copy: Path) -> None:
    patch = PATCHES[0].replace("class PodMetrics", "class Others").replace("import Histogram", "import Nothing")
    assert applied(patch, copy).returncode != 0
