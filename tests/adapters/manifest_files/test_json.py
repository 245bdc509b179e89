"""Manifests in JSON."""

import json
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from tests.adapters.manifest_files.reading import errors, only, plain, pods


def test_a_pod_in_json_is_read() -> None:
    content = {"apiVersion": "v1", "kind": "Pod", **plain("web")}
    content["metadata"] = {"name": "web", "annotations": {"smile": "\U0001f600"}}
    for text in (
        json.dumps(content),
        json.dumps(content, indent="\t", ensure_ascii=False),
        " \n" + json.dumps(content),
    ):
        assert only(text).metadata.annotations == {"smile": "\U0001f600"}


def test_several_json_values_are_several_documents() -> None:
    text = "".join(json.dumps({"apiVersion": "v1", "kind": "Pod", **plain(name)}) + "\n" for name in "ab")
    assert [pod.key for pod in pods(text)] == ["default/a", "default/b"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[' + "[]," * 125_000 + '0],"b":[' + "1," * 125_000 + "1]}",
        "{}\n" + '{"k":1}\n' * 90_000,
        '{"a":{' + ",".join(f'"k{number}":"\\"[{{,"' for number in range(125_000)) + "}}",
    ],
)
def test_json_with_too_many_values_is_refused_before_it_is_parsed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "JSONDecoder", None)
    assert errors(text) == ["web.yaml: more than 250000 values"]


def test_brackets_in_json_strings_are_not_counted_as_values() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **plain("a")}
    pod["metadata"] = {"name": "a", "annotations": {"a": '[],{}:"\\' * 40_000}}
    found = errors(json.dumps(pod))
    assert found == ["web.yaml: metadata.annotations: 320001 bytes are above 262144"]


def test_a_pod_of_very_many_containers_is_rejected_before_they_are_checked() -> None:
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls[Path(frame.f_code.co_filename).name] += 1

    one = {"name": "app", "image": "busybox:1"}
    many = {"metadata": {"name": "a"}, "spec": {"containers": [one] * 4_000}}
    text = json.dumps({"apiVersion": "v1", "kind": "Pod", **many})
    sys.setprofile(count)
    try:
        found = errors(text)
    finally:
        sys.setprofile(None)
    assert found == [
        "web.yaml: spec.containers: 4000 containers, including init and ephemeral ones, are above 256; split the pod"
    ]
    assert 0 < calls["counts.py"] < 50
    assert calls["shape.py"] == calls["validation.py"] == 0


def test_braces_that_are_not_json_are_yaml() -> None:
    text = '{\n  # KYAML\n  apiVersion: "v1", kind: "Pod", metadata: {name: "web",},\n'
    text += '  spec: {containers: [{name: "a", image: "i",},],},\n}'
    assert only(text).key == "default/web"
    assert errors('{"a": ')[0] == "web.yaml: line 2, column 1: not YAML: did not find expected node content"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"apiVersion": "v1", "apiVersion": "v1", "kind": "ConfigMap"}', "web.yaml: duplicate key 'apiVersion'"),
        (
            '{"apiVersion": "v1", "kind": "Pod", "spec": {"priority": NaN}}',
            "web.yaml: spec.priority: nan is not a finite number",
        ),
        (
            '{"apiVersion": "v1", "kind": "Pod", "spec": {"priority": 1e999}}',
            "web.yaml: spec.priority: inf is not a finite number",
        ),
        ('{"kind": "\\u0000"}', "web.yaml: kind: contains a NUL character"),
        (
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\\ud800"}}',
            "web.yaml: metadata.name: contains an unpaired surrogate, expected valid Unicode",
        ),
        (
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"\\udfff": "a"}}}',
            "web.yaml: metadata.labels: contains an unpaired surrogate, expected valid Unicode",
        ),
    ],
)
def test_errors_in_json(text: str, expected: str) -> None:
    assert errors(text)[0] == expected
