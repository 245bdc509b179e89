"""JSONPath templates in kubectl's syntax, applied to plain data."""

from typing import Any

import pytest

from chronolet.cli.printing.forms import spelled_out
from chronolet.cli.printing.jsonpath import JsonPathError, parsed, relaxed

WEB: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "shop", "tier": "front"}},
    "spec": {"containers": [{"name": "app", "image": "a:1"}, {"name": "side", "image": "b:2"}], "hostNetwork": True},
    "status": {"podIP": "10.0.0.7", "restarts": 3, "none": None},
}
DB: dict[str, Any] = {"metadata": {"name": "db"}, "spec": {"containers": [{"name": "db"}]}, "status": {}}
LIST = {"kind": "List", "items": [WEB, DB]}

ONE = [
    ("{.status.podIP}", "10.0.0.7"),
    ("{$.status.podIP}", "10.0.0.7"),
    ("{@.status.podIP}", "10.0.0.7"),
    ("{ .status.podIP }", "10.0.0.7"),
    ("{.status.missing.below}", ""),
    ("{.status.podIP.below}", ""),
    ("ip: {.status.podIP}!", "ip: 10.0.0.7!"),
    ("no braces", "no braces"),
    ("", ""),
    ("{.status.restarts}", "3"),
    ("{.status.none}", "null"),
    ("{.spec.hostNetwork}", "true"),
    ("{.spec.containers[0].name}", "app"),
    ("{.spec.containers[-1].name}", "side"),
    ("{.spec.containers[*].name}", "app side"),
    ("{.spec.containers[0:1].name}", "app"),
    ("{.spec.containers[::2].name}", "app"),
    ("{.spec.containers[1:].name}", "side"),
    ("{.spec.containers[0].*}", "app a:1"),
    ("{.spec.containers[1]}", '{"name":"side","image":"b:2"}'),
    (r"{.metadata.labels.app\.kubernetes\.io/name}", "shop"),
    ("{.metadata.labels['app.kubernetes.io/name']}", "shop"),
    ("{['metadata']['name']}", "web"),
    ("{.metadata.name}{'\\t'}{\"a}\\n\"}", "web\ta}\n"),
    ('{.metadata.name "=" .status.podIP}', "web=10.0.0.7"),
    ("{.none[*].a}", ""),
]


@pytest.mark.parametrize(("template", "text"), ONE, ids=[template for template, _ in ONE])
def test_a_template_prints_the_values_of_its_paths(template: str, text: str) -> None:
    assert parsed(template).text(WEB) == text


MANY = [
    ("{.items[*].metadata.name}", "web db"),
    ('{range .items[*]}{.metadata.name}{"\\t"}{.status.podIP}{"\\n"}{end}', "web\t10.0.0.7\ndb\t\n"),
    ("{range .items[*]}{range .spec.containers[*]}{.name},{end};{end}.", "app,side,;db,;."),
    ("{range .items[*]}{$.kind}/{.metadata.name} {end}", "List/web List/db "),
    ("{range .none[*]}{.x}{end}", ""),
    ("{range .items[*].metadata}{@.name} {end}", "web db "),
    ("{range .items[*].metadata.name}{.} {end}", "web db "),
]


@pytest.mark.parametrize(("template", "text"), MANY, ids=[template for template, _ in MANY])
def test_a_range_prints_its_body_for_each_item(template: str, text: str) -> None:
    assert parsed(template).text(LIST) == text


BAD = [
    ('{.items[?(@.kind=="Pod")].x}', "a filter"),
    ("{..name}", "recursive descent"),
    ("{.a['b','c']}", "a union"),
    ("{.a[0,1]}", "a union"),
    ("{.a", "braces"),
    ("{.a.}", "expected .name"),
    ("{.a[}", "expected .name"),
    ("{.a[x]}", "expected .name"),
    ("{.a[::0]}", "expected .name"),
    ('{"a}', "a complete expression in braces"),
    ("{a}", "expected a path"),
    ("{range .a}", "without its {end}"),
    ("{end}", "without a {range"),
]


@pytest.mark.parametrize(("template", "message"), BAD, ids=[template for template, _ in BAD])
def test_unsupported_syntax_is_refused_by_name(template: str, message: str) -> None:
    with pytest.raises(JsonPathError, match=message.replace("{", r"\{")):
        parsed(template)


def test_an_index_out_of_bounds_is_an_error_that_names_it() -> None:
    with pytest.raises(JsonPathError, match="array index out of bounds: index 2, length 2"):
        parsed("{.spec.containers[2]}").text(WEB)


@pytest.mark.parametrize("template", ["{.status.podIP}", ".status.podIP", "status.podIP", "$.status.podIP"])
def test_a_single_path_needs_no_braces(template: str) -> None:
    assert relaxed(template).found(WEB) == ["10.0.0.7"]


def test_control_characters_in_a_result_are_escaped_on_a_terminal() -> None:
    assert spelled_out("a\x1b[2J\tb\r\n") == "a\\x1b[2J\tb\\r\n"
