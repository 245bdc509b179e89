"""Reading manifest files: what becomes a pod, and for everything else one line that says where and why."""

import json
import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from chronolet.adapters.manifest_files import MAX_BYTES, Parsed, read_documents
from chronolet.adapters.manifest_files.documents import MAX_DEPTH, MAX_DOCUMENTS
from chronolet.adapters.manifest_files.reader import MAX_REPORTED
from chronolet_schemas.podspec import Pod

HEAD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n"
POD = HEAD + "spec:\n  containers:\n  - name: app\n    image: nginx:1\n"


def read(text: str | bytes) -> Parsed:
    return read_documents(text, "web.yaml")


def errors(text: str | bytes) -> list[str]:
    """The errors as lines; a file with errors yields no pod."""
    parsed = read(text)
    assert parsed.errors
    assert parsed.pods == ()
    return [str(error) for error in parsed.errors]


def pods(text: str | bytes) -> tuple[Pod, ...]:
    parsed = read(text)
    assert [str(error) for error in parsed.errors] == []
    return parsed.pods


def spec(text: str) -> str:
    """A pod whose container has these lines as well."""
    return POD + textwrap.indent(textwrap.dedent(text), "    ")


def only(text: str) -> Pod:
    (pod,) = pods(text)
    return pod


def test_a_pod_comes_out_defaulted() -> None:
    pod = only(POD)
    assert pod.key == "default/web"
    assert pod.spec.containers[0].image_pull_policy == "IfNotPresent"
    assert read_documents(POD, "web.yaml", namespace="team").pods[0].key == "team/web"


# --- the documents of a file


def test_several_documents_and_empty_ones() -> None:
    other = POD.replace("web", "other")
    assert [pod.key for pod in pods(f"---\n# nothing\n---\n{POD}---\n{other}---\n")] == ["default/web", "default/other"]


def test_one_bad_document_refuses_the_file() -> None:
    bad = POD.replace("web", "other").replace("nginx:1", "7")
    assert errors(f"{POD}---\n{bad}") == [
        "web.yaml: document 2: spec.containers[0].image: 7 is a number, expected text in quotes"
    ]


def test_a_document_that_breaks_off_does_not_hide_what_came_before() -> None:
    assert errors(f"{POD}    tty: 1\n---\na: [1\nb: }}") == [
        "web.yaml: document 1: spec.containers[0].tty: 1 is a number, expected true or false",
        "web.yaml: document 2: line 12, column 2: not YAML: did not find expected ',' or ']'",
    ]


def test_the_same_pod_twice() -> None:
    assert errors(f"{POD}---\n{POD}") == [
        "web.yaml: document 2: metadata.name: pod default/web is defined twice in this file, first in document 1"
    ]


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_lists(kind: str) -> None:
    items = [{"apiVersion": "v1", "kind": "Pod", **plain(name)} for name in ("a", "b")]
    found = pods(json.dumps({"apiVersion": "v1", "kind": kind, "items": items}))
    assert [pod.key for pod in found] == ["default/a", "default/b"]


def plain(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "app", "image": "i"}]}}


def test_the_items_of_a_pod_list_need_no_kind() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [plain("a")]})
    assert [pod.kind for pod in pods(text)] == ["Pod"]
    refused = errors(text.replace("PodList", "List"))
    assert refused == [
        "web.yaml: items[0].apiVersion: missing, expected v1",
        "web.yaml: items[0].kind: missing, expected Pod, Secret or List",
    ]


def test_a_list_in_a_list_and_its_paths() -> None:
    inner = {"apiVersion": "v1", "kind": "PodList", "items": [plain("a"), plain("A"), 3]}
    text = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [inner, plain("x") | {"apiVersion": "v1", "kind": "Pod"}]}
    )
    first, second = errors(text)
    assert first.startswith("web.yaml: items[0].items[1].metadata.name: 'A' is not allowed")
    assert second == ("web.yaml: items[0].items[2]: 3 is a number, expected a map with apiVersion, kind and metadata")


def test_the_same_pod_twice_in_a_list() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [plain("a"), plain("a")]})
    assert errors(text) == [
        "web.yaml: items[1].metadata.name: pod default/a is defined twice in this file, first in document 1 at items[0]"
    ]


def test_an_empty_list_holds_nothing_and_is_no_error() -> None:
    assert pods("apiVersion: v1\nkind: List\nitems:\n") == ()


@pytest.mark.parametrize("items", ["{a: b}", "text", "7"])
def test_a_list_without_a_list(items: str) -> None:
    (error,) = errors(f"apiVersion: v1\nkind: List\nitems: {items}\n")
    assert error.startswith("web.yaml: items: ")
    assert error.endswith("expected a list")


def test_what_may_stand_beside_a_pod_is_told() -> None:
    kind = "ConfigMap"
    parsed = read(f"{POD}---\napiVersion: v1\nkind: {kind}\nmetadata:\n  name: c\nstringData:\n  a: hunter2\n")
    assert [pod.key for pod in parsed.pods] == ["default/web"]
    (finding,) = parsed.findings
    assert (finding.document, finding.path, finding.severity, finding.pod) == (2, "kind", "warning", "")
    assert str(finding) == f"kind: {kind}s are not supported yet and are ignored"
    assert "hunter2" not in repr(parsed)


# --- what is no Pod


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["holds no object, expected a v1 Pod"]),
        ("# only a comment\n---\n---\n", ["holds no object, expected a v1 Pod"]),
        ("just text", ["'just text' is text, expected a map with apiVersion, kind and metadata"]),
        ("- a", ["found a list, expected a map with apiVersion, kind and metadata"]),
        ("7", ["7 is a number, expected a map with apiVersion, kind and metadata"]),
        ("yes", ["true is a boolean, expected a map with apiVersion, kind and metadata"]),
        ("{}", ["apiVersion: missing, expected v1", "kind: missing, expected Pod, Secret or List"]),
        ("apiVersion: v1", ["kind: missing, expected Pod, Secret or List"]),
        ("kind: Pod", ["apiVersion: missing, expected v1"]),
        ("apiVersion: v2\nkind: Pod", ["apiVersion: 'v2' is not supported, expected v1"]),
        (
            "apiVersion: 1\nkind: 2",
            ["apiVersion: 1 is a number, expected v1", "kind: 2 is a number, expected Pod, Secret or List"],
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment",
            [
                "apiVersion: 'apps/v1' is not supported, expected v1",
                "kind: 'Deployment' is not supported, expected Pod, Secret or List",
            ],
        ),
    ],
)
def test_what_is_no_pod(text: str, expected: list[str]) -> None:
    assert errors(text) == [f"web.yaml: {line}" for line in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1\n b: }", "line 2, column 3: not YAML: did not find expected ',' or ']'"),
        ("a:\n\tb: 1", "line 2, column 1: not YAML: found character that cannot start any token"),
        ("%FOO\n---\n", "line 1, column 5: not YAML: found unknown directive name"),
        ("a: \0", "not YAML: control characters are not allowed (0 at 3)"),
        ("a: \x07", "not YAML: control characters are not allowed (7 at 3)"),
        ('a: "\\q"', "line 1, column 5: not YAML: found unknown escape character"),
        ("a: *b", "line 1: alias *b has no anchor before it"),
        ("a: &a [*a]", "line 1: alias *a has no anchor before it"),
        (b"a: \xff", "not UTF-8: invalid start byte"),
        (b"\xff\xfea\0", "not UTF-8: invalid start byte"),
    ],
)
def test_what_is_no_yaml(text: str | bytes, expected: str) -> None:
    assert errors(text) == [f"web.yaml: {expected}"]


def test_a_text_that_is_no_unicode() -> None:
    (error,) = errors("a: \ud800")
    assert error.startswith("web.yaml: not UTF-8: ")


def test_a_byte_order_mark_is_passed_over() -> None:
    assert pods("\ufeff" + POD) == pods(POD) == pods(b"\xef\xbb\xbf" + POD.encode())


# --- bounds


def test_ten_megabytes_are_refused_before_they_are_parsed() -> None:
    assert errors(b"[" * 10_000_000) == [f"web.yaml: is larger than the limit of {MAX_BYTES} bytes"]


def test_an_alias_bomb_is_refused() -> None:
    levels = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40))]
    assert errors("\n".join(levels)) == ["web.yaml: line 7: more than 250000 values with aliases expanded"]


def test_a_bomb_of_long_texts_is_refused() -> None:
    text = f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 1000)}]"
    assert errors(text) == ["web.yaml: line 2: more than 6291456 characters with aliases expanded"]


def test_many_small_bombs_are_one_large_one() -> None:
    bomb = f"a: &a [{', '.join('x' * 300)}]\nb: [{', '.join(['*a'] * 300)}]\n"
    assert errors("---\n".join([bomb] * 100))[-1] == (
        "web.yaml: document 3: line 8: more than 250000 values with aliases expanded"
    )


def test_aliases_and_merges_within_bounds_are_written_out() -> None:
    text = POD.replace("  - name", "  - &app\n    name") + "  - <<: *app\n    name: other\n"
    pod = only(text)
    assert [(one.name, one.image) for one in pod.spec.containers] == [("app", "nginx:1"), ("other", "nginx:1")]


def test_merging_several_maps_lets_the_first_win() -> None:
    text = HEAD + "  labels:\n    <<: [{a: '1', b: '1'}, {b: '2', c: '2'}]\n    c: '3'\n" + POD.removeprefix(HEAD)
    assert only(text).metadata.labels == {"a": "1", "b": "1", "c": "3"}


def test_merging_what_is_no_map() -> None:
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


def test_no_more_errors_are_told_than_anybody_reads() -> None:
    ports = "".join(f"    - containerPort: {70000 + index}\n" for index in range(MAX_REPORTED + 7))
    told = errors(f"{POD}    ports:\n{ports}")
    assert len(told) == MAX_REPORTED + 1
    assert told[-1] == "web.yaml: 7 more errors"


def test_no_more_findings_are_told_than_anybody_reads() -> None:
    parsed = read(POD + "".join(f"  x{index}: 1\n" for index in range(MAX_REPORTED + 7)))
    assert len(parsed.findings) == MAX_REPORTED + 1
    assert parsed.findings[-1].message == "7 more fields are not honoured"


def test_a_path_is_fit_for_a_terminal() -> None:
    parsed = read(POD + '  "a\\e[31m\\nb": 1\n  ' + "k" * 400 + ": 1\n")
    assert [finding.path for finding in parsed.findings] == [r"spec.a\x1b[31m\nb", "spec." + "k" * 295 + "..."]


# --- scalars


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("text", "text"),
        ("'1'", "1"),
        ('"yes"', "yes"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("12:30:45", "12:30:45"),
        ("1.2.3", "1.2.3"),
        ("1Gi", "1Gi"),
        ("0x", "0x"),
        ("0b2", "0b2"),
        ("+", "+"),
        ("|\n        a\n        b\n", "a\nb\n"),
        (">\n        a\n        b\n", "a b\n"),
        ("'#'", "#"),
        ("~", ""),
        ("", ""),
    ],
)
def test_texts_stay_texts(written: str, value: str) -> None:
    assert only(spec(f"env:\n- name: A\n  value: {written}\n")).spec.containers[0].env[0].value == value


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        *[(word, "true is a boolean") for word in ("yes", "on", "y", "True")],
        *[(word, "false is a boolean") for word in ("no", "off", "N", "FALSE")],
        *[("1", "1 is a number"), ("0644", "420 is a number"), ("0o17", "15 is a number"), ("0x1F", "31 is a number")],
        *[("-0b11", "-3 is a number"), ("1_000", "1000 is a number"), ("1.5", "1.5 is a number")],
        *[("08", "8 is a number"), (".5", "0.5 is a number"), ("1e3", "1000 is a number"), ("1.0", "1 is a number")],
        *[("!!int '7'", "7 is a number"), ("!!bool 'no'", "false is a boolean")],
        *[("[]", "found a list"), ("{}", "found a map")],
    ],
)
def test_what_is_no_text_says_what_it_is(written: str, shown: str) -> None:
    (error,) = errors(spec(f"env:\n- name: A\n  value: {written}\n"))
    assert error.startswith(f"web.yaml: spec.containers[0].env[0].value: {shown}, expected text")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (".inf", "inf is not a finite number"),
        ("-.Inf", "-inf is not a finite number"),
        (".NaN", "nan is not a finite number"),
        ("1e999", "inf is not a finite number"),
        ("9" * 5000, "inf is not a finite number"),
        ("9" * 20, "99999999999999999999 is above 2147483647"),
        ("-" + "9" * 20, "-99999999999999999999 is below -2147483648"),
        ("1.5", "1.5 is a number, expected a whole number"),
        ("'1'", "'1' is text, expected a whole number"),
        ("true", "true is a boolean, expected a whole number"),
        ("!foo 1", "tag !foo is not supported"),
        ("!!binary MQ==", "tag tag:yaml.org,2002:binary is not supported"),
        ("!!python/name:os.system ''", "tag tag:yaml.org,2002:python/name:os.system is not supported"),
    ],
)
def test_numbers(written: str, message: str) -> None:
    assert errors(f"{POD}  priority: {written}\n") == [f"web.yaml: spec.priority: {message}"]


def test_a_whole_float_is_a_number() -> None:
    assert only(f"{POD}  priority: 8.0\n").spec.priority == 8


def test_octal_modes() -> None:
    pod = only(f"{POD}  volumes:\n  - name: c\n    configMap: {{name: c, defaultMode: 0644}}\n")
    assert pod.spec.volumes[0].config_map is not None
    assert pod.spec.volumes[0].config_map.default_mode == 0o644


@pytest.mark.parametrize(
    ("written", "text"), [("1", "1"), ("1.5", "1.5"), ("0.1", "0.1"), ("1e3", "1000"), ("100m", "100m"), ("'2'", "2")]
)
def test_quantities_become_text(written: str, text: str) -> None:
    pod = only(spec(f"resources:\n  limits:\n    cpu: {written}\n"))
    assert pod.spec.containers[0].resources.limits == {"cpu": text}


def test_keys_are_texts() -> None:
    text = HEAD + "  labels: {1: a, yes: b, 1.5: c, 0x10: d}\n" + POD.removeprefix(HEAD)
    assert only(text).metadata.labels == {"1": "a", "true": "b", "1.5": "c", "16": "d"}


@pytest.mark.parametrize("key", ["null", "[a]", "{a: b}", "~"])
def test_what_is_no_key(key: str) -> None:
    assert errors(HEAD + f"  labels:\n    ? {key}\n    : a\n" + POD.removeprefix(HEAD)) == [
        "web.yaml: metadata.labels: the key in line 6 is not text"
    ]


@pytest.mark.parametrize("name", ['"a\\0b"', '"a\\x00b"'])
def test_a_nul_character(name: str) -> None:
    assert errors(POD.replace("nginx:1", name)) == ["web.yaml: spec.containers[0].image: contains a NUL character"]


# --- duplicate keys, unknown fields, nulls


def test_duplicate_keys() -> None:
    assert errors(f"{POD}    image: other\n  restartPolicy: Never\n  restartPolicy: Never\n") == [
        "web.yaml: spec.containers[0].image: duplicate key",
        "web.yaml: spec.restartPolicy: duplicate key",
    ]


def test_unknown_fields_are_findings() -> None:
    parsed = read(f"{POD}    imagePullpolicy: Never\n  nonsense: 1\nstatuss: {{}}\n")
    assert parsed.errors == ()
    assert [str(finding) for finding in parsed.findings] == [
        "spec.containers[0].imagePullpolicy: unknown field, did you mean imagePullPolicy?",
        "spec.nonsense: unknown field",
        "statuss: unknown field",
    ]
    assert {finding.severity for finding in parsed.findings} == {"warning"}
    assert {finding.pod for finding in parsed.findings} == {"default/web"}


def test_strict_refuses_unknown_fields_and_what_is_not_honoured() -> None:
    text = f"{POD}  nonsense: 1\n  hostUsers: false\n"
    assert len(read(text).pods) == 1
    parsed = read_documents(text, "web.yaml", strict=True)
    assert parsed.pods == ()
    assert [error.path for error in parsed.errors] == ["spec.nonsense", "spec.hostUsers"]
    assert len(read_documents(POD, "web.yaml", strict=True).pods) == 1


def test_nulls_are_as_if_not_written() -> None:
    text = spec("command:\nports: null\nresources: ~\n") + "  volumes:\n  restartPolicy:\nstatus:\n"
    assert pods(text) == pods(POD)


def test_a_null_in_a_map_of_texts_is_an_empty_text() -> None:
    assert only(HEAD + "  labels:\n    a:\n" + POD.removeprefix(HEAD)).metadata.labels == {"a": ""}


def test_an_empty_text_is_no_choice() -> None:
    assert pods(spec("imagePullPolicy: ''\n")) == pods(POD)


def test_a_status_is_passed_over_but_must_be_one() -> None:
    assert pods(f"{POD}status: {{phase: Running, nonsense: 1}}\n") == pods(POD)
    assert errors(f"{POD}status: 7\n") == ["web.yaml: status: 7 is a number, expected a map"]


# --- types, all at once


def test_all_wrong_types_are_told_at_once_and_nothing_that_only_follows() -> None:
    text = HEAD + textwrap.dedent(
        """
        spec:
          hostPID: 1
          affinity: []
          tolerations: {}
          restartPolicy: Sometimes
          dnsPolicy: 7
          volumes:
          - 3
          - name: [v]
          containers:
          - name: 1
            image: {}
            command: sh
            args: [1, x, null]
            env: [A=B]
            ports:
            - {containerPort: "80", hostPort: 70000, protocol: tcp}
            resources: {limits: {cpu: [1]}}
            volumeMounts:
            - {name: v, mountPath: /v, readOnly: "yes"}
            livenessProbe: {httpGet: {port: 1.5}}
          - null
        """
    )
    assert [error.removeprefix("web.yaml: spec.").partition(",")[0] for error in errors(text)] == [
        "hostPID: 1 is a number",
        "affinity: found a list",
        "tolerations: found a map",
        "restartPolicy: 'Sometimes' is not allowed",
        "dnsPolicy: 7 is a number",
        "volumes[0]: 3 is a number",
        "volumes[1].name: found a list",
        "containers[0].name: 1 is a number",
        "containers[0].image: found a map",
        "containers[0].command: 'sh' is text",
        "containers[0].args[0]: 1 is a number",
        "containers[0].args[2]: found null",
        "containers[0].env[0]: 'A=B' is text",
        "containers[0].ports[0].containerPort: '80' is text",
        "containers[0].ports[0].protocol: 'tcp' is not allowed",
        "containers[0].resources.limits.cpu: found a list",
        "containers[0].volumeMounts[0].readOnly: 'yes' is text",
        "containers[0].livenessProbe.httpGet.port: 1.5 is a number",
        "containers[1]: found null",
        "containers[0].ports[0].hostPort: 70000 is above 65535",
    ]


def test_a_port_may_be_a_name_or_a_number() -> None:
    for port in ("http", "80"):
        ports = "ports: [{name: http, containerPort: 80}]\n"
        assert pods(spec(f"{ports}livenessProbe: {{tcpSocket: {{port: {port}}}}}\n"))
    assert errors(spec("livenessProbe: {tcpSocket: {port: 99999999999}}\n")) == [
        "web.yaml: spec.containers[0].livenessProbe.tcpSocket.port: 99999999999 is above 2147483647"
    ]


def test_a_metadata_or_spec_that_is_no_map() -> None:
    assert errors("apiVersion: v1\nkind: Pod\nmetadata: []\nspec: 7\n") == [
        "web.yaml: metadata: found a list, expected a map",
        "web.yaml: spec: 7 is a number, expected a map",
    ]


def test_what_nobody_looks_into_is_still_made_fit_to_travel() -> None:
    pod = only(f"{POD}  affinity: {{a: [1, null, {{b: null, c: 1.5}}], d: null}}\n")
    assert pod.spec.affinity == {"a": [1, {"c": 1.5}]}
    assert errors(f"{POD}  affinity: {{a: [1, {2**53 + 1}]}}\n") == [
        f"web.yaml: spec.affinity.a[1]: {2**53 + 1} is a number, expected at most {2**53}"
    ]
    (error,) = errors(f"{POD}  affinity: {{a: {{b: {-(2**60)}}}}}\n")
    assert error.startswith("web.yaml: spec.affinity.a.b: ")


def test_a_long_text_is_cut_in_the_message() -> None:
    (error,) = errors(f"{POD}  priority: {'x' * 1000}\n")
    assert error == f"web.yaml: spec.priority: {'x' * 60!r}... is text, expected a whole number"


# --- JSON


def test_json() -> None:
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


def test_what_stands_in_json_strings_is_not_counted() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **plain("a")}
    pod["metadata"] = {"name": "a", "annotations": {"a": '[],{}:"\\' * 40_000}}
    found = errors(json.dumps(pod))
    assert found == ["web.yaml: metadata.annotations: 320001 bytes are above 262144"]


def test_a_pod_of_very_many_containers_is_refused_without_a_look_at_them() -> None:
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


def test_braces_that_are_no_json_are_yaml() -> None:
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
def test_what_is_wrong_in_json(text: str, expected: str) -> None:
    assert errors(text)[0] == expected
