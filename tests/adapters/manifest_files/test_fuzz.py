"""Reading any file yields pods or readable errors, and never raises."""

import json

import msgpack
import msgspec
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chronolet.adapters.manifest_files import Parsed, read_documents
from chronolet.adapters.manifest_files.documents import documents
from chronolet.adapters.manifest_files.shape import fit
from chronolet_schemas.podspec import Pod, defaulted, from_plain, to_plain
from tests.schemas.podspec_strategy import pods

FUZZED = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
SLOWER = settings(FUZZED, max_examples=80)

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: &l {a: "1"}}
spec:
  nodeSelector: *l
  containers:
  - &c {name: app, image: "nginx:1", env: [{name: A, value: "x y"}], ports: [{containerPort: 80, hostPort: 8080}]}
  - <<: *c
    name: other
    ports: []
  volumes: [{name: v, hostPath: {path: /v}}, {name: w}]
"""
TOKENS = st.sampled_from(
    [
        *["{", "}", "[", "]", ":", ": ", "- ", "\n", "\n  ", ",", "&a ", "*a", "<<: ", "!!str ", "!!int ", "!x ", "? "],
        *["|\n", ">\n", "'", '"', "#", "---\n", "...\n", "%YAML 1.1\n", "~", "null", "1", "0x1", "1e9", ".nan", "true"],
        *[
            "y",
            "\t",
            "\\u0000",
            "apiVersion",
            "v1",
            "kind",
            "Pod",
            "List",
            "items",
            "metadata",
            "name",
            "spec",
            "image",
        ],
        *["containers", "\ufeff"],
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def checked(content: bytes | str) -> Parsed:
    """Read the file, and check what must hold for every file."""
    parsed = read_documents(content, "f.yaml")
    assert not (parsed.pods and parsed.errors)
    for error in parsed.errors:
        assert error.file == "f.yaml"
        assert error.message
    encoded = msgspec.msgpack.encode(parsed)
    assert msgspec.msgpack.decode(encoded, type=Parsed) == parsed
    for pod in parsed.pods:
        assert msgpack.unpackb(msgspec.msgpack.encode(pod)).keys() <= {"apiVersion", "kind", "metadata", "spec"}
        assert defaulted(pod) == pod
    return parsed


@FUZZED
@given(st.binary(max_size=60))
def test_any_bytes_are_read(content: bytes) -> None:
    checked(content)


@FUZZED
@given(st.text(st.characters(), max_size=40))
@example("\ud800")
def test_any_text_is_read(content: str) -> None:
    checked(content)


@FUZZED
@given(st.lists(TOKENS, max_size=30).map("".join))
def test_any_sequence_of_yaml_tokens_is_read(content: str) -> None:
    checked(content)


@FUZZED
@given(st.integers(0, len(POD)), st.integers(0, 8), TOKENS)
def test_a_pod_with_a_replaced_slice_is_read(position: int, length: int, put_in: str) -> None:
    checked(POD[:position] + put_in + POD[position + length :])


@SLOWER
@given(
    st.sampled_from(["metadata", "spec", "status", "items", "kind", "apiVersion", "data", "stringData", "type"]), JSON
)
def test_a_pod_with_any_value_in_a_field_is_read(field: str, value: object) -> None:
    for kind in ("Pod", "List", "Secret"):
        checked(json.dumps({"apiVersion": "v1", "kind": kind, field: value}))


@SLOWER
@given(JSON)
def test_a_container_with_any_value_in_a_field_is_read(value: object) -> None:
    container = dict.fromkeys(("name", "image", "args", "env", "ports", "resources", "livenessProbe", "stdin"), value)
    checked(json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container], "volumes": value}}))


@SLOWER
@given(pods())
def test_a_generated_pod_has_no_type_errors(drawn: Pod) -> None:
    """A pod that is written as JSON or YAML is read back as it was generated, without unknown fields or wrong types."""
    content = {**to_plain(drawn), "apiVersion": "v1", "kind": "Pod"}
    # Quote everything, with tags for types other than text, because PyYAML writes the text `y` without quotes.
    written = yaml.safe_dump(content, allow_unicode=True, default_style='"')
    for text in (json.dumps(content), written):
        checked(text)
        (document,) = documents(text)
        assert document.problems == ()
        fitted = fit(document.value, Pod)
        assert (fitted.problems, fitted.unknown) == ((), ())
        assert from_plain(fitted.value) == from_plain(content)


def test_the_base_pod_of_the_fuzz_tests_is_valid() -> None:
    assert [pod.key for pod in checked(POD).pods] == ["default/web"]
