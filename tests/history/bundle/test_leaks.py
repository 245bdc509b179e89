"""Secrets in unusual forms and places are taken out, and so are their copies elsewhere."""

import json
import random
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from chronolet.history.bundle.redaction import searching
from chronolet.history.bundle.redaction.redactor import Redactor, Values
from chronolet.history.bundle.vocabulary import words
from chronolet_schemas.envelope import Entry, Position
from tests.history.bundle.test_redaction import env, redacted

SURE = "S3cretMark="
ARGUMENTS: dict[str, tuple[list[str], str]] = {
    "a value that ends in =": (["--password", "S3cretMark="], "S3cretMark"),
    "base64 after a flag": (["--key", "bWFyazEyMzQ1Njc4OQ=="], "bWFyazEyMzQ1Njc4OQ"),
    "a value with =": (["--password", "ab12=cd34"], "ab12=cd34"),
    "a value like a short assignment": (["--password", "abcd=cd"], "abcd=cd"),
    "a value like a flag after a short flag": (["-a", "--dashPw"], "--dashPw"),
    "a value like a flag after a sensitive flag": (["--password", "--S3cret.x"], "--S3cret.x"),
    "a value like a path after a sensitive flag": (["--password", "/S3cret/x"], "/S3cret/x"),
    "base64 alone": (["bWFyazEyMzQ1Njc4OQ=="], "bWFyazEyMzQ1Njc4OQ"),
    "base64 of small letters alone": (["qwhzxkplmnbv="], "qwhzxkplmnbv"),
    "an assignment whose name has digits": (["S3cretMark=x"], "S3cretMark"),
    "a program that is none": (["S3cretMark"], "S3cretMark"),
    "a sensitive flag after another": (["--token", "--password", "S3cretMark"], "S3cretMark"),
}


@pytest.mark.parametrize(("arguments", "secret"), ARGUMENTS.values(), ids=ARGUMENTS)
@pytest.mark.parametrize("field", ["args", "command"])
def test_arguments(arguments: list[str], secret: str, field: str) -> None:
    found = redacted({field: arguments}, {"message": f"it printed {secret} twice"})
    assert secret not in str(found)


TEXTS = {
    "a password with a slash in a URL": ("dial amqp://u:p/wSlash6655@h/ refused", "wSlash6655"),
    "a password with @ in a URL": ("dial redis://:ab@S3cret@db refused", "S3cret"),
    "a URL in JSON": ('{"url":"redis://:a"S3cret@db"}', "S3cret"),
    "a password with a comma": ("password=abc,S3cret x", "S3cret"),
    "a password with other signs": ("password=abc;)}]>S3cret x", "S3cret"),
    "a password that begins with a sign": ("password=&S3cret x", "S3cret"),
    "an escaped quote in JSON": ('{"password": "qu\\"S3cret"}', "S3cret"),
    "JSON in JSON": ('{\\"password\\": \\"S3cret x\\"}', "S3cret x"),
    "JSON in JSON in JSON": ('{\\\\\\"password\\\\\\": \\\\\\"S3cret x\\\\\\"}', "S3cret x"),
    "an open quote": ('password: "two S3cret', "S3cret"),
    "an apostrophe in a repr": ('env[0].name: "PASSWORD=it\'s-S3cret" is not allowed', "S3cret"),
    "a quote in a repr": ("env[0].name: 'X=it\\'s-S3cret' is not allowed", "S3cret"),
    "a short name": ("pw=S3cret", "S3cret"),
    "a sentence": ("the password is S3cret now", "S3cret"),
    "a cookie": ("Cookie: sid=S3cret; b=Oth3r", "Oth3r"),
    "a flag of mysql": ("ran mysql -u root -pS3cret shop", "S3cret"),
    "a flag of redis-cli": ("ran redis-cli -h db -a S3cret ping", "S3cret"),
    "a webhook": ("post https://hooks.slack.com/services/T0/B0/S3cret failed", "S3cret"),
    "a session in a path": ("GET /shop;jsessionid=S3cret failed", "S3cret"),
    "a user in an image": ("pull u:imgPwd8877@reg.io/app:1 denied", "imgPwd8877"),
    "a user in an image with a digest": (f"pull u:imgPwd8877@reg.io/app@sha256:{'0' * 64} denied", "imgPwd8877"),
}


@pytest.mark.parametrize(("text", "secret"), TEXTS.values(), ids=TEXTS)
def test_texts(text: str, secret: str) -> None:
    assert secret not in redacted({"message": text})[0]["message"]


KEPT_TEXTS = (
    f"docker-pullable://nginx:1.25@sha256:{'0' * 64}",
    "reg.io:5000/shop/app:1.2.3 is present on the machine",
    "the token is not valid",
    "GET http://10.0.0.1:8080/healthz: connection refused",
)


@pytest.mark.parametrize("text", KEPT_TEXTS)
def test_texts_that_stay(text: str) -> None:
    assert redacted({"message": text}) == [{"message": text}]


PLACES: dict[str, tuple[dict[str, Any], str]] = {
    "the path of a probe": ({"httpGet": {"path": "/health/S3cretTok1"}}, "S3cretTok1"),
    "a query without a name": ({"httpGet": {"path": "/health?S3cretTok1"}}, "S3cretTok1"),
    "a session in the path of a probe": ({"httpGet": {"path": "/x;jsessionid=aB3dE5"}}, "aB3dE5"),
    "the host of a probe": ({"httpGet": {"host": "u:S3cretTok1@h"}}, "S3cretTok1"),
    "a Host header": ({"httpHeaders": [{"name": "Host", "value": "S3cretTok1"}]}, "S3cretTok1"),
    "a User-Agent": ({"httpHeaders": [{"name": "User-Agent", "value": "x S3cretTok1"}]}, "S3cretTok1"),
    "a sysctl": ({"sysctls": [{"name": "kernel.domainname", "value": "S3cretTok1"}]}, "S3cretTok1"),
    "a number": ({"env": [{"name": "PASSWORD", "value": 48154815}]}, "48154815"),
    "a number in an annotation": ({"annotations": {"a/password": 48154815}}, "48154815"),
    "an image": ({"image": "u:imgPwd8877@reg.io/app:1"}, "imgPwd8877"),
}


@pytest.mark.parametrize(("event", "secret"), PLACES.values(), ids=PLACES)
def test_places(event: dict[str, Any], secret: str) -> None:
    found = redacted(event, {"message": f"it printed {secret} twice"})
    assert secret not in str(found)
    assert "<redacted-" in str(found[0])


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/ready", "/actuator/health/livenessState", "/a-b_c.php"])
def test_usual_paths_stay(path: str) -> None:
    assert redacted({"httpGet": {"path": path}}) == [{"httpGet": {"path": path}}]


PASSWORD = "imgPwd/8877é"
HIDDEN = {
    "hexadecimal": PASSWORD.encode().hex(),
    "hexadecimal in capitals": PASSWORD.encode().hex().upper(),
    "capitals": PASSWORD.upper().replace("É", "é"),
    "fully encoded": "".join(f"%{byte:02X}" for byte in PASSWORD.encode()),
    "partly encoded": PASSWORD.replace("g", "%67").replace("/", "%2f"),
    "escaped": json.dumps(PASSWORD).replace("i", "\\u0069").replace("/", "\\/"),
    "quoted": quote(PASSWORD, ""),
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_other_forms_of_a_known_value(text: str) -> None:
    found = redacted(env(DB_PASSWORD=PASSWORD), {"message": f"it printed {text} twice", "any": text})[1]
    assert re.fullmatch(r'it printed "?<redacted-[0-9]+>"? twice', found["message"])
    assert re.fullmatch(r'"?<redacted-[0-9]+>"?', found["any"])


def test_a_password_that_is_part_of_a_name_is_no_name() -> None:
    found = redacted({"image": "reg.io/x:imgPwd8877"}, env(PASSWORD="imgPwd8877"), {"message": "said imgPwd8877"})
    assert "imgPwd8877" not in str(found)


def test_a_password_that_is_a_name_is_replaced_everywhere_in_the_same_way() -> None:
    secret = "Hunter2222"
    states = msgspec.msgpack.encode({f"default/{secret}": {"state": {"name": secret, "pods": {f"x/{secret}": 1}}}})
    entry = Entry(Position(1, 1), "t", f"pod/x/{secret}", f"spec.{secret}", f"pod/{secret}#1", f"{secret}-1", b"")
    values = Values()
    Redactor(values).data(msgspec.msgpack.encode(env(PASSWORD=secret)))
    values.add_names(entry)
    redactor = Redactor(values, search=searching.search(values, words()))
    found = msgspec.msgpack.decode(redactor.states(states))
    mark = "<redacted-1>"
    assert found == {f"default/{mark}": {"state": {"name": mark, "pods": {f"x/{mark}": 1}}}}
    assert redactor.entry(entry)[2:6] == (f"pod/x/{mark}", f"spec.{mark}", f"pod/{mark}#1", f"{mark}-1")


def test_names_of_fields_stay_if_a_password_is_part_of_them() -> None:
    manifest = {"restartPolicy": "Always", "containers": [{"name": "app", "imagePullPolicy": "Always"}]}
    assert redacted(env(PASSWORD="restart"), manifest)[1] == manifest


ALPHABET = "abcXYZ0189=-/@\"'`,;:&%\\+.~!{}[]()<>é"
PLACES_OF_VALUES: Mapping[str, Any] = {
    "a variable": lambda value: env(DB_PASSWORD=value),
    "a word after a flag": lambda value: {"args": ["run", "--password", value]},
    "a flag": lambda value: {"args": ["run", f"--password={value}"]},
    "a header": lambda value: {"httpHeaders": [{"name": "Authorization", "value": value}]},
    "an annotation": lambda value: {"annotations": {"a/password": value}},
}


@pytest.mark.parametrize("place", PLACES_OF_VALUES)
def test_generated_values(place: str) -> None:
    """Values of all signs that passwords have, in every place, with copies in texts, in JSON and in URLs."""
    source = random.Random(place)
    for _ in range(150):
        value = "Q7" + "".join(source.choices(ALPHABET, k=source.randint(8, 24))) + "z9"
        if source.random() < 0.5:
            value = source.choice(("-", "--", "=", "/", '"')) + value
        copies = {"text": value, "json": json.dumps({"a": value}), "repr": repr(value), "url": quote(value, "")}
        found = redacted(PLACES_OF_VALUES[place](value), {"message": " ; ".join(copies.values())})
        for form in (value, json.dumps(value)[1:-1], repr(value)[1:-1], quote(value, "")):
            assert form not in str(found[0]), (value, form)
            assert form not in found[1]["message"], (value, form, found[1])
