"""Secrets in manifest files: what is read from them. No message shows their content."""

import base64
import json
from typing import Any

import pytest

from chronolet.adapters.manifest_files import read_documents
from chronolet.ports.pods.secrets import Secret

PASSWORD = "hunter2hunter2"
CONFIG = json.dumps({"auths": {"reg.example": {"username": "u", "password": PASSWORD}}})
TYPE = "kubernetes.io/dockerconfigjson"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: a}]}\n---\n"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(**fields: Any) -> dict[str, Any]:
    """Return a valid Secret with these fields changed; a field set to None is omitted."""
    whole = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "regcred"},
        "type": TYPE,
        "data": {".dockerconfigjson": encoded(CONFIG)},
        **fields,
    }
    return {name: value for name, value in whole.items() if value is not None}


def errors(value: Any) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value)
    parsed = read_documents(text, "s.yaml")
    assert parsed.secrets == ()
    lines = [str(error) for error in parsed.errors]
    assert lines
    assert PASSWORD not in "".join(lines)
    assert encoded(CONFIG)[:12] not in "".join(lines)
    return lines


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"data": {".dockerconfigjson": encoded(CONFIG)[:20] + "\n" + encoded(CONFIG)[20:]}},
        {"data": None, "stringData": {".dockerconfigjson": CONFIG}},
        {"data": {".dockerconfigjson": encoded("{}")}, "stringData": {".dockerconfigjson": CONFIG}},
        {"immutable": True, "metadata": {"name": "regcred", "labels": {"a": "b"}}},
    ],
)
def test_a_secret_is_read_next_to_a_pod(fields: dict[str, Any]) -> None:
    parsed = read_documents(POD + json.dumps(secret(**fields)), "s.yaml", namespace="team")
    assert (parsed.errors, parsed.findings) == ((), ())
    assert [pod.key for pod in parsed.pods] == ["team/web"]
    assert parsed.secrets == (
        Secret(namespace="team", name="regcred", type=TYPE, data={".dockerconfigjson": CONFIG.encode()}),
    )
    assert PASSWORD not in repr(parsed)
    assert parsed.secrets[0].key == "team/regcred"


def test_the_older_type_and_lists_are_read() -> None:
    old = secret(
        type="kubernetes.io/dockercfg",
        data={".dockercfg": encoded(json.dumps({"reg.example": {"auth": encoded("u:p")}})), "more": None},
        metadata={"name": "old", "namespace": "team"},
    )
    parsed = read_documents(json.dumps({"apiVersion": "v1", "kind": "List", "items": [secret(), old]}), "s.yaml")
    assert [one.key for one in parsed.secrets] == ["default/regcred", "team/old"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (secret(type=None), "type: 'Opaque' is not supported yet, expected kubernetes.io/dockerconfigjson or "),
        (secret(type="bootstrap.kubernetes.io/token"), "type: 'bootstrap.kubernetes.io/token' is not supported yet"),
        (secret(type={"a": PASSWORD}), "type: a value that is not text is not supported yet"),
        (secret(metadata=None), "metadata.name: missing, expected a name"),
        (secret(metadata={"name": 7}), "metadata.name: is not text, expected a name"),
        (secret(metadata={"name": "A"}), "metadata.name: 'A'"),
        (secret(metadata={"name": "a", "namespace": "a.b"}), "metadata.namespace: 'a.b'"),
        (secret(data=None), "data[.dockerconfigjson]: missing, expected a Docker configuration"),
        (secret(data={"config.json": encoded(CONFIG)}), "data[.dockerconfigjson]: missing"),
        (secret(data=PASSWORD), "data: is not a map, expected names and values"),
        (secret(data={".dockerconfigjson": [PASSWORD]}), "data[.dockerconfigjson]: is not text, expected it in quotes"),
        (secret(data={".dockerconfigjson": CONFIG}), "data[.dockerconfigjson]: is not base64"),
        (secret(data={".dockerconfigjson": encoded(PASSWORD)}), "data[.dockerconfigjson]: JSON is malformed"),
        (secret(stringData=PASSWORD), "stringData: is not a map"),
        (secret(stringData={".dockerconfigjson": {"auths": PASSWORD}}), "stringData[.dockerconfigjson]: is not text"),
        (
            secret(data={".dockerconfigjson": encoded(json.dumps({"auths": {"r": {"auth": PASSWORD + "?"}}}))}),
            "data[.dockerconfigjson]: auths['r'].auth: is not base64",
        ),
        (secret(data={"a": "A" * 1_500_000}), "data: holds more than 1048576 bytes"),
    ],
)
def test_errors_have_the_path_and_no_value(value: Any, expected: str) -> None:
    assert errors(value)[0].startswith(f"s.yaml: {expected}")


def test_malformed_yaml_shows_nothing_of_a_secret() -> None:
    text = json.dumps(secret())[:-1]
    for broken in (text + ", 'x", text.replace('"data"', "data: !!python/x"), text + "\n  a: [", f"{text}, {text}"):
        errors(broken)


def test_a_secret_defined_twice_and_an_error_in_a_list() -> None:
    twice = {"apiVersion": "v1", "kind": "SecretList", "items": [secret(), secret(), secret(type="x")]}
    first = "first in document 1 at items[0]"
    assert errors(twice) == [
        f"s.yaml: items[1].metadata.name: Secret default/regcred is defined twice in this file, {first}",
        f"s.yaml: items[2].type: 'x' is not supported yet, expected {TYPE} or kubernetes.io/dockercfg",
    ]


def test_unknown_fields_are_findings() -> None:
    parsed = read_documents(json.dumps(secret(stringdata={"a": PASSWORD})), "s.yaml")
    assert [str(one) for one in parsed.findings] == ["stringdata: unknown field of a Secret"]
    assert len(parsed.secrets) == 1
