"""YAML scalars and keys: which of them become text, numbers or booleans, and which are refused."""

import pytest

from tests.adapters.manifest_files.reading import HEAD, POD, errors, only, spec


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
def test_texts_stay_text(written: str, value: str) -> None:
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
def test_other_types_in_place_of_a_text_are_named_in_the_error(written: str, shown: str) -> None:
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
def test_bad_numbers_are_errors(written: str, message: str) -> None:
    assert errors(f"{POD}  priority: {written}\n") == [f"web.yaml: spec.priority: {message}"]


def test_a_whole_float_is_a_number() -> None:
    assert only(f"{POD}  priority: 8.0\n").spec.priority == 8


def test_octal_modes_are_read() -> None:
    pod = only(f"{POD}  volumes:\n  - name: c\n    configMap: {{name: c, defaultMode: 0644}}\n")
    assert pod.spec.volumes[0].config_map is not None
    assert pod.spec.volumes[0].config_map.default_mode == 0o644


@pytest.mark.parametrize(
    ("written", "text"), [("1", "1"), ("1.5", "1.5"), ("0.1", "0.1"), ("1e3", "1000"), ("100m", "100m"), ("'2'", "2")]
)
def test_quantities_become_text(written: str, text: str) -> None:
    pod = only(spec(f"resources:\n  limits:\n    cpu: {written}\n"))
    assert pod.spec.containers[0].resources.limits == {"cpu": text}


def test_keys_become_text() -> None:
    text = HEAD + "  labels: {1: a, yes: b, 1.5: c, 0x10: d}\n" + POD.removeprefix(HEAD)
    assert only(text).metadata.labels == {"1": "a", "true": "b", "1.5": "c", "16": "d"}


@pytest.mark.parametrize("key", ["null", "[a]", "{a: b}", "~"])
def test_a_key_of_another_type_is_an_error(key: str) -> None:
    assert errors(HEAD + f"  labels:\n    ? {key}\n    : a\n" + POD.removeprefix(HEAD)) == [
        "web.yaml: metadata.labels: the key in line 6 is not text"
    ]


@pytest.mark.parametrize("name", ['"a\\0b"', '"a\\x00b"'])
def test_a_nul_character_is_an_error(name: str) -> None:
    assert errors(POD.replace("nginx:1", name)) == ["web.yaml: spec.containers[0].image: contains a NUL character"]
