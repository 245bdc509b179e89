"""Limits of manifest files: size, aliases, nesting, numbers of documents and of reported problems."""

import pytest

from chronolet.adapters.manifest_files import MAX_BYTES
from chronolet.adapters.manifest_files.documents import MAX_DEPTH, MAX_DOCUMENTS
from chronolet.adapters.manifest_files.reader import MAX_REPORTED
from tests.adapters.manifest_files.reading import HEAD, POD, errors, only, read


def test_ten_megabytes_are_refused_before_they_are_parsed() -> None:
    assert errors(b"[" * 10_000_000) == [f"web.yaml: is larger than the limit of {MAX_BYTES} bytes"]


def test_an_alias_bomb_is_refused() -> None:
    levels = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40))]
    assert errors("\n".join(levels)) == ["web.yaml: line 7: more than 250000 values with aliases expanded"]


def test_a_bomb_of_long_texts_is_refused() -> None:
    text = f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 1000)}]"
    assert errors(text) == ["web.yaml: line 2: more than 6291456 characters with aliases expanded"]


def test_the_limit_covers_all_documents_of_a_file() -> None:
    bomb = f"a: &a [{', '.join('x' * 300)}]\nb: [{', '.join(['*a'] * 300)}]\n"
    assert errors("---\n".join([bomb] * 100))[-1] == (
        "web.yaml: document 3: line 8: more than 250000 values with aliases expanded"
    )


def test_aliases_and_merges_within_limits_are_expanded() -> None:
    text = POD.replace("  - name", "  - &app\n    name") + "  - <<: *app\n    name: other\n"
    pod = only(text)
    assert [(one.name, one.image) for one in pod.spec.containers] == [("app", "nginx:1"), ("other", "nginx:1")]


def test_of_several_merged_maps_the_first_wins() -> None:
    text = HEAD + "  labels:\n    <<: [{a: '1', b: '1'}, {b: '2', c: '2'}]\n    c: '3'\n" + POD.removeprefix(HEAD)
    assert only(text).metadata.labels == {"a": "1", "b": "1", "c": "3"}


def test_merging_something_other_than_a_map_is_an_error() -> None:
    (error,) = errors(HEAD + "  labels:\n    <<: [x]\n" + POD.removeprefix(HEAD))
    assert error == "web.yaml: metadata.labels.<<: merged value is not a map"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused(opening: str) -> None:
    assert errors(opening * 100_000) == [f"web.yaml: line 1: nested deeper than {MAX_DEPTH} levels"]


def test_deep_nesting_in_json_is_refused() -> None:
    assert errors('{"a":' * 100 + "1" + "}" * 100)[0].endswith(f"nested deeper than {MAX_DEPTH} levels")
    assert errors('{"a":' * 100_000 + "1" + "}" * 100_000) == [
        f"web.yaml: line 1: nested deeper than {MAX_DEPTH} levels"
    ]


@pytest.mark.parametrize("document", ["---\n", "--- 1\n", "{}"])
def test_too_many_documents_are_refused(document: str) -> None:
    assert f"more than {MAX_DOCUMENTS} documents" in " ".join(errors(document * 100_000))


def test_the_number_of_reported_errors_is_limited() -> None:
    ports = "".join(f"    - containerPort: {70000 + index}\n" for index in range(MAX_REPORTED + 7))
    reported = errors(f"{POD}    ports:\n{ports}")
    assert len(reported) == MAX_REPORTED + 1
    assert reported[-1] == "web.yaml: 7 more errors"


def test_the_number_of_reported_findings_is_limited() -> None:
    parsed = read(POD + "".join(f"  x{index}: 1\n" for index in range(MAX_REPORTED + 7)))
    assert len(parsed.findings) == MAX_REPORTED + 1
    assert parsed.findings[-1].message == "7 more fields are not honoured"


def test_paths_are_escaped_and_truncated() -> None:
    parsed = read(POD + '  "a\\e[31m\\nb": 1\n  ' + "k" * 400 + ": 1\n")
    assert [finding.path for finding in parsed.findings] == [r"spec.a\x1b[31m\nb", "spec." + "k" * 295 + "..."]
