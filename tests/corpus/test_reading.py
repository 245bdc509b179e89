"""Each manifest of the corpus has exactly the expected problems or findings."""

from typing import Any

import pytest

from chronolet.adapters.manifest_files import Parsed, read_documents
from chronolet_schemas.podspec import BLOCKING, WARNING, from_plain, to_plain
from tests.corpus.expected import EXPECTED, Accepted, Refused
from tests.corpus.manifests import batches, content, images, paths, rewritten

pytestmark = pytest.mark.corpus

REFUSED = sorted(file for file, one in EXPECTED.items() if isinstance(one, Refused))
ACCEPTED = sorted(file for file, one in EXPECTED.items() if isinstance(one, Accepted))


def read(file: str) -> Parsed:
    return read_documents(paths()[file].read_bytes(), file)


def test_every_manifest_has_an_expectation() -> None:
    assert set(EXPECTED) == set(paths())
    assert len(EXPECTED) == len(paths()) == 52


@pytest.mark.parametrize("file", REFUSED)
def test_a_refused_manifest_has_the_expected_problems(file: str) -> None:
    parsed = read(file)
    expected = EXPECTED[file]
    assert isinstance(expected, Refused)
    assert {error.path for error in parsed.errors} == set(expected.problems)
    assert parsed.pods == ()


@pytest.mark.parametrize("file", ACCEPTED)
def test_an_accepted_manifest_has_the_expected_findings(file: str) -> None:
    parsed = read(file)
    expected = EXPECTED[file]
    assert isinstance(expected, Accepted)
    found = {(one.severity, one.path) for one in parsed.findings}
    wanted = {*((BLOCKING, path) for path in expected.blocks), *((WARNING, path) for path in expected.warns)}
    assert (found, parsed.errors) == (wanted, ())
    (pod,) = parsed.pods
    assert from_plain(to_plain(pod)) == pod


@pytest.mark.parametrize("file", ACCEPTED)
def test_only_images_are_replaced(file: str) -> None:
    named = images()[file]
    before = paths()[file].read_text()
    after = rewritten(before, named)
    assert len(before.splitlines()) == len(after.splitlines())
    changed = [new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
    assert len(changed) == len(list(_images(content(before))))
    assert not set(_images(content(after))) & set(named)
    assert _without_images(content(after)) == _without_images(content(before))


def test_batches_contain_every_pod_once_and_no_name_twice() -> None:
    pods = {file: content(paths()[file].read_text()) for file in ACCEPTED}
    made = batches(pods)
    assert sorted(file for batch in made for file in batch) == ACCEPTED
    for batch in made:
        names = [(pods[file]["metadata"].get("namespace"), pods[file]["metadata"]["name"]) for file in batch]
        assert len(names) == len(set(names))


def _images(pod: Any) -> list[str]:
    return [one["image"] for field in ("initContainers", "containers") for one in pod["spec"].get(field, [])]


def _without_images(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_images(held) for key, held in value.items() if key != "image"}
    return [_without_images(held) for held in value] if isinstance(value, list) else value
