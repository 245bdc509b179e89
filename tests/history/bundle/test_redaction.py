"""Secrets are taken out of events and states, wherever they are, and everything else stays as it was."""

import base64
import json
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from chronolet.history.bundle.redaction import searching
from chronolet.history.bundle.redaction.redactor import Redactor, Values
from chronolet.history.bundle.redaction.rules import Kept
from chronolet.history.bundle.vocabulary import words
from chronolet_schemas import times
from chronolet_schemas.envelope import Entry, Position

FIXED = words()


def redacted(*events: dict[str, Any], keep: tuple[str, ...] = (), secrets: tuple[bytes, ...] = ()) -> list[Any]:
    """Return the data of these events after both passes, as `bundle save` makes them."""
    values, kept = Values(), Kept(keep)
    for secret in secrets:
        searching.add_secret(values, secret)
    encoded = [msgspec.msgpack.encode(event) for event in events]
    learning = Redactor(values, kept)
    for number, data in enumerate(encoded, 1):
        values.add_names(Entry(Position(1, number), "t", "pod/default/web", "container/app", "", "", data))
        learning.data(data)
    redactor = Redactor(values, kept, searching.search(values, FIXED))
    return [msgspec.msgpack.decode(redactor.data(data)) for data in encoded]


def env(**values: str) -> dict[str, Any]:
    return {"env": [{"name": name, "value": value} for name, value in values.items()]}


PLACES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an environment variable": (env(MODE="fast1"), env(MODE="<redacted-1>")),
    "an empty variable": (env(MODE=""), env(MODE="")),
    "a reference to a variable": (env(MODE="$(OTHER)"), env(MODE="$(OTHER)")),
    "a variable from elsewhere": (
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]},
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]},
    ),
    "a plugin's variables": ({"answer": {"envs": {"KEY": "x"}}}, {"answer": {"envs": {"KEY": "<redacted-1>"}}}),
    "a command": ({"command": ["sh", "-c", "x y"]}, {"command": ["sh", "-c", "<redacted-1>"]}),
    "arguments": ({"args": ["--pin", "1", "go"]}, {"args": ["--pin", "1", "go"]}),
    "secret arguments": ({"args": ["--token=1", "hunter2"]}, {"args": ["--token=<redacted-1>", "<redacted-2>"]}),
    "an annotation": ({"annotations": {"a/b": "x"}}, {"annotations": {"a/b": "<redacted-1>"}}),
    "annotations with a meaning": (
        {"annotations": {"kubectl.kubernetes.io/default-container": "app", "chronolet/period-milliseconds": "9"}},
        {"annotations": {"kubectl.kubernetes.io/default-container": "app", "chronolet/period-milliseconds": "9"}},
    ),
    "a header": (
        {"httpHeaders": [{"name": "X-Any", "value": "x"}, {"name": "Host", "value": "h"}]},
        {"httpHeaders": [{"name": "X-Any", "value": "<redacted-1>"}, {"name": "Host", "value": "h"}]},
    ),
    "a volume's driver": (
        {"csi": {"driver": "d", "volumeAttributes": {"a": "x"}, "readOnly": True}},
        {"csi": {"driver": "d", "volumeAttributes": {"a": "<redacted-1>"}, "readOnly": True}},
    ),
    "a field with a sensitive name": ({"settings": {"api_token": "x"}}, {"settings": {"api_token": "<redacted-1>"}}),
    "all texts in such a field": (
        {"settings": {"credentials": {"key": "x", "count": 3, "more": ["y", {"name": "z"}]}}},
        {
            "settings": {
                "credentials": {"key": "<redacted-1>", "count": 3, "more": ["<redacted-2>", {"name": "<redacted-3>"}]}
            }
        },
    ),
    "a volume with a Secret": (
        {"volumes": [{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}}]},
        {"volumes": [{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}}]},
    ),
    "names of pull secrets": (
        {"imagePullSecrets": [{"name": "r"}], "pull_secrets": ["r"]},
        {"imagePullSecrets": [{"name": "r"}], "pull_secrets": ["r"]},
    ),
    "a field with a harmless name": ({"settings": {"token_file": "/x"}}, {"settings": {"token_file": "/x"}}),
    "an address of a server": (
        {"settings": {"redis": "redis://:hunter2@h/0"}},
        {"settings": {"redis": "redis://<redacted-1>@h/0"}},
    ),
    "names of Secrets": (
        {"pull_secrets": {"db-password": "0" * 32}, "secret": "default/token", "secretName": "password"},
        {"pull_secrets": {"db-password": "0" * 32}, "secret": "default/token", "secretName": "password"},
    ),
    "bytes in an event": ({"data": [1, b"hunter2"]}, {"data": [1, "<7 bytes left out>"]}),
    "an extension type": ({"data": msgspec.msgpack.Ext(5, b"hunter2")}, {"data": "<7 bytes left out>"}),
    "numbers and truth values": (
        {"attempt": 3, "ok": True, "none": None, "x": 0.5},
        {"attempt": 3, "ok": True, "none": None, "x": 0.5},
    ),
    "a map with numbers as keys": ({"a": {1: "x"}}, {"a": {1: "x"}}),
    "odd environments": (
        {"env": ["text", {"name": "A"}, {"value": "x"}, {"name": "B", "value": 7}]},
        {"env": ["text", {"name": "A"}, {"value": "<redacted-1>"}, {"name": "B", "value": 7}]},
    ),
}


@pytest.mark.parametrize(("given", "expected"), PLACES.values(), ids=PLACES)
def test_each_place(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert redacted(given) == [expected]


@pytest.mark.parametrize("around", ["manifest", "spec", "state", "containers"])
def test_places_at_any_depth(around: str) -> None:
    assert redacted({around: [{"x": [env(MODE="fast1")]}]}) == [{around: [{"x": [env(MODE="<redacted-1>")]}]}]


def test_equal_values_have_equal_marks_and_others_other_ones() -> None:
    found = redacted(env(A="one1", B="two2"), env(A="two2", B="one1"), env(A="three3"))
    assert found == [
        env(A="<redacted-1>", B="<redacted-2>"),
        env(A="<redacted-2>", B="<redacted-1>"),
        env(A="<redacted-3>"),
    ]


KEPT: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "a variable": (("MODE",), env(MODE="fast1")),
    "a pattern": (("M*",), env(MODE="fast1")),
    "an annotation": (("a/b",), {"annotations": {"a/b": "x y"}}),
    "a header": (("X-Any",), {"httpHeaders": [{"name": "X-Any", "value": "v"}]}),
    "arguments": (("args",), {"args": ["--token=1", "hunter2"]}),
    "a command": (("command",), {"command": ["sh", "-c", "echo hunter2"]}),
    "a URL with a password": (("DB",), env(DB="pg://u:p@h")),
    "an attribute": (("a",), {"csi": {"volumeAttributes": {"a": "x"}}}),
    "a setting": (("api_token",), {"settings": {"api_token": "x"}}),
}


@pytest.mark.parametrize(("keep", "event"), KEPT.values(), ids=KEPT)
def test_kept_names(keep: tuple[str, ...], event: dict[str, Any]) -> None:
    assert redacted(event, keep=keep) == [event]
    assert redacted(event) != [event], "without the exemption it is redacted"


def test_data_without_secrets_keeps_its_bytes() -> None:
    data = msgspec.msgpack.encode({"a": 1, "b": [0.5, None, {"c": "x"}]})
    assert Redactor(Values()).data(data) == data


TWICE = b"\x82\xa7message\xa7hunter2\xa7message\xa2ok"
PADDED = b"\x83\xa1f\xca\x00\x00\x00\x00\xa7message\xa7hunter2\xa7message\xa2ok"


@pytest.mark.parametrize("data", [TWICE, b"\x81\xa1a" + TWICE, b"\x81\xa1a\x91" + TWICE, PADDED])
def test_a_value_that_a_later_one_of_the_same_name_hides_is_left_out(data: bytes) -> None:
    changed = Redactor(Values()).data(data)
    assert b"hunter2" not in changed
    assert msgspec.msgpack.decode(changed) == msgspec.msgpack.decode(data)


def test_the_time_of_an_entry_stays_its_last_field() -> None:
    data = times.with_time(msgspec.msgpack.encode(env(A="x1y2")), 1_800_000_000_000)
    changed = Redactor(Values()).data(data)
    assert changed != data
    assert times.time_at(Position(1, 1), changed) == 1_800_000_000_000


@pytest.mark.parametrize("data", [b"\xc1", b"hunter2", b"\x93\x01\x02\x03", b"\xa7hunter2", b"\x91" * 100_000, b"\x81"])
def test_data_that_is_no_map_is_taken_out(data: bytes) -> None:
    changed = Redactor(Values()).data(data)
    assert b"hunter2" not in changed
    assert msgspec.msgpack.decode(changed) == {"redacted": f"{len(data)} bytes that are not the data of an event"}


@pytest.mark.parametrize("field", ["type", "entity", "subject", "actor", "cause"])
@pytest.mark.parametrize("form", ["{}", "{}/default/web", "pod/{}", "{}#1", "pod/0#{}", "x.{}@1"])
def test_a_secret_in_the_fields_of_an_entry_is_redacted(field: str, form: str) -> None:
    values = Values()
    searching.add_secret(values, b"hunter2-and-more")
    usual = Entry(Position(1, 1), "pod.PodEnded@1", "pod/default/web", "pod/u1", "pod/0#1", "1-1", b"")
    redactor = Redactor(values, search=searching.search(values, FIXED))
    assert redactor.entry(usual) == usual
    secret: dict[str, Any] = {field: form.format("hunter2-and-more")}
    assert redactor.entry(usual._replace(**secret)) == usual._replace(**{**secret, field: form.format("<redacted-1>")})


def test_a_type_that_has_the_letters_of_a_password_stays() -> None:
    values = Values()
    searching.add_secret(values, b"PodEnded")
    entry = Entry(Position(1, 1), "pod.PodEnded@1", "pod/default/web", "pod/u1", "pod/0#1", "1-1", b"")
    assert Redactor(values, search=searching.search(values)).entry(entry) == entry


# -- secrets elsewhere ------------------------------------------------------------------------------------------------
SECRET = "s3cr3t/Pa+ss\"w'o rd"
FORMS = {
    "as it is": SECRET,
    "within a word": f"x{SECRET}y",
    "in JSON": json.dumps({"a": SECRET}),
    "quoted": repr(SECRET),
    "in a URL": f"http://h/{quote(SECRET)}/x",
    "in a query": f"http://h/?q={quote(SECRET, '')}",
    "in base64": base64.b64encode(SECRET.encode()).decode(),
    "in base64 with a line feed": base64.b64encode(SECRET.encode() + b"\n").decode(),
    "in base64 after one letter": base64.b64encode(b"u" + SECRET.encode()).decode(),
    "in base64 after a user": base64.b64encode(b"us:" + SECRET.encode() + b"zz").decode(),
    "in base64 for URLs": base64.urlsafe_b64encode(SECRET.encode()).decode(),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("field", ["output", "message", "error", "any_other"])
def test_a_known_secret_is_found_in_every_form(text: str, field: str) -> None:
    _, found = redacted(env(DB_PASSWORD=SECRET), {field: f"it says {text} and ends"})
    assert found[field].startswith("it says ")
    assert found[field].endswith(" and ends")
    assert "<redacted-" in found[field]
    for piece in ("s3cr3t", "czNjcjN0", "MzY3IzdC", "zM2NyM3"):
        assert piece not in found[field]


CONTENTS = {
    "a password": b"hunter2",
    "a password with a line feed": b"hunter2\n",
    "a file with several lines": b"user=joe\nhunter2-and-more\n",
    "only the credentials of a registry": b'{"auths": {"h": {"auth": "aHVudGVyMjpodW50ZXIy"}}}',
    "a docker configuration": json.dumps(
        {"auths": {"h": {"auth": "aHVudGVyMjpodW50ZXIy", "password": "hunter2"}}}
    ).encode(),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_the_contents_of_secrets_are_known(content: bytes) -> None:
    (found,) = redacted({"message": "denied: hunter2 hunter2-and-more aHVudGVyMjpodW50ZXIy"}, secrets=(content,))
    assert "<redacted-" in found["message"]
    expected = "hunter2-and-more" if b"more" in content else " hunter2 "
    assert expected not in found["message"]


def test_binary_contents_of_secrets_are_known_in_base64() -> None:
    content = bytes(range(128, 168))
    (found,) = redacted({"message": f"x {base64.b64encode(content).decode()}"}, secrets=(content,))
    assert found["message"] == "x <redacted-1>"


HARMLESS: dict[str, tuple[dict[str, Any], str]] = {
    "a word of a sentence": (env(KIND="container"), "Created container app"),
    "a number": (env(PORT="8080"), "dial 10.0.0.1:8080 refused"),
    "a path": (env(DIR="/var/lib/web"), "no space in /var/lib/web"),
    "the pod's own name": (env(NAME="web-7f9c4d"), "Pod web-7f9c4d is ready"),
    "a word within a longer one": (env(MODE="fast-ish"), "breakfast-ishmael"),
    "a fixed value": (env(POLICY="IfNotPresent"), "policy IfNotPresent"),
}


@pytest.mark.parametrize(("event", "text"), HARMLESS.values(), ids=HARMLESS)
def test_texts_stay_readable(event: dict[str, Any], text: str) -> None:
    named = {"pod": "default/web-7f9c4d", "namespace": "default", "name": "web-7f9c4d"}
    assert redacted(named, event, {"message": text})[2] == {"message": text}


def test_a_manifest_in_an_annotation_does_not_redact_the_manifest_itself() -> None:
    """kubectl puts the whole manifest into an annotation, so every word in it is once the value of an annotation."""
    spec = {
        "restartPolicy": "OnFailure",
        "containers": [{"name": "app", "image": "registry.local/shop/cart:1.2.3", "imagePullPolicy": "IfNotPresent"}],
    }
    applied = json.dumps({"apiVersion": "v1", "kind": "Pod", "spec": spec})
    manifest = {
        "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}},
        "spec": spec,
    }
    (found,) = redacted({"manifest": manifest})
    assert found["manifest"]["spec"] == spec
    assert "registry" not in json.dumps(found["manifest"]["metadata"])


def test_redacting_twice_changes_nothing() -> None:
    once = redacted(env(A="one1"), {"args": ["--x=secret1"], "message": "one1 password=abc"})
    assert redacted(*once) == once


LONG = "x " * 600


def test_a_secret_that_was_cut_is_found() -> None:
    """The agent cuts the output of probes at its end, the engine the output of containers at its beginning."""
    secret = "hunter2-and-more"
    for length in range(6, len(secret)):
        _, end, begin = redacted(
            env(DB_PASSWORD=secret), {"output": LONG + secret[:length]}, {"message": secret[-length:] + LONG}
        )
        assert end["output"] == f"{LONG}<redacted-1>"
        assert begin["message"] == f"<redacted-1>{LONG}"


def test_a_command_in_an_error_is_found() -> None:
    script = "redis-cli -a hunter2; sleep 1"
    message = f'command "/bin/sh -c {script}" timed out'
    assert redacted({"command": ["/bin/sh", "-c", script]}, {"message": message})[1] == {
        "message": 'command "/bin/sh -c <redacted-1>" timed out'
    }


def test_states_are_redacted_like_events() -> None:
    states = msgspec.msgpack.encode({"default/env": {"state": {"manifest": env(A="s3cr3t!!")}, "positions": {}}})
    found = msgspec.msgpack.decode(Redactor(Values()).states(states))
    assert found == {"default/env": {"state": {"manifest": env(A="<redacted-1>")}, "positions": {}}}
