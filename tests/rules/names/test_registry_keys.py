"""Registry credentials for an image, selected by the keys of Docker configurations."""

import base64
import json
from typing import Any

import pytest

from chronolet.rules.names.image_names import parsed
from chronolet.rules.names.registry_keys import (
    BadDockerConfig,
    Credential,
    docker_config,
    dockercfg,
    matching,
    of_secret,
    server_of,
)


def auth(name: str, password: str = "p") -> str:
    return base64.b64encode(f"{name}:{password}".encode()).decode()


def config(**entries: Any) -> bytes:
    return json.dumps({"auths": entries}).encode()


def names(image: str, *configs: dict[str, str]) -> list[str]:
    """Return the user names of the credentials for an image; each configuration maps keys to user names."""
    keys = [{key: Credential(username=user, password="p") for key, user in one.items()} for one in configs]
    return [one.username for one in matching(keys, parsed(image))]


def test_a_configuration_is_read_in_all_its_forms() -> None:
    found = docker_config(
        json.dumps(
            {
                "auths": {
                    "a": {"auth": auth("u", "p:q"), "email": "x@y"},
                    "b": {"username": "n", "password": "w"},
                    "c": {"identitytoken": "t", "registrytoken": "r"},
                    "padded": {"auth": base64.b64encode(b"u:p\0\0").decode().rstrip("=")},
                    "empty": {},
                    "null": None,
                },
                "credHelpers": {"reg.example": "pass"},
                "credsStore": "desktop",
                "HttpHeaders": {"A": "b"},
            }
        ).encode()
    )
    assert found.keys == {
        "a": Credential(username="u", password="p:q"),
        "b": Credential(username="n", password="w"),
        "c": Credential(identity_token="t", registry_token="r"),
        "padded": Credential(username="u", password="p"),
    }
    assert (found.helpers, found.store) == ({"reg.example": "pass"}, "desktop")
    assert docker_config(b'{"auths": null, "credHelpers": null}').keys == {}
    assert dockercfg(json.dumps({"a": {"auth": auth("u")}}).encode()).keys == {
        "a": Credential(username="u", password="p")
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "Input data was truncated"),
        (b"\xff\xfe", "malformed"),
        (b'{"auths": {"a": {"password": 5}}}', "`$.auths[...].password`"),
        (b'{"auths": {"a": {"auth": "?s3cret?"}}}', "auths['a'].auth: is not base64"),
        (
            config(a={"auth": base64.b64encode(b"s3cret").decode()}),
            "auths['a'].auth: is not the base64 of name:password",
        ),
        (config(a={"auth": base64.b64encode(b"\xff:s3cret").decode()}), "is not base64"),
        (b'{"auths": {"\xff": {}}}', "not UTF-8"),
    ],
)
def test_an_unreadable_configuration_is_reported_without_its_values(content: bytes, words: str) -> None:
    with pytest.raises(BadDockerConfig) as refusal:
        docker_config(content)
    assert words in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


def test_errors_in_the_older_form_name_its_own_paths() -> None:
    with pytest.raises(BadDockerConfig, match=r"^\['a'\]\.auth: is not base64$"):
        dockercfg(b'{"a": {"auth": "?"}}')
    with pytest.raises(BadDockerConfig, match="Expected `object`"):
        dockercfg(b"[]")


def test_no_repr_shows_a_value() -> None:
    assert "s3cret" not in repr(docker_config(config(a={"username": "u", "password": "s3cret"})))


@pytest.mark.parametrize(
    ("image", "keys", "users"),
    [
        ("reg.example/app", {"reg.example": "a", "other.example": "b"}, ["a"]),
        ("reg.example/app", {"https://reg.example/v2/": "a", "http://reg.example/v1/": "b"}, ["a", "b"]),
        ("reg.example/app", {"reg.example:5000": "a"}, []),
        ("reg.example:5000/app", {"reg.example": "a", "reg.example:5000": "b"}, ["b"]),
        ("reg.example/team/app", {"reg.example": "a", "reg.example/team": "b", "reg.example/other": "c"}, ["b", "a"]),
        ("a.reg.example/app", {"*.reg.example": "a", "reg.example": "b", "?.reg.example": "c"}, ["c", "a"]),
        ("busybox", {"https://index.docker.io/v1/": "a"}, ["a"]),
        ("team/app", {"index.docker.io": "a", "reg.example": "b"}, ["a"]),
        ("busybox", {"docker.io": "a", "https://index.docker.io/v1/": "b"}, ["a"]),
        ("reg.example/app", {"index.docker.io": "a"}, []),
        ("localhost/app", {"localhost": "a"}, ["a"]),
    ],
)
def test_keys_match_images(image: str, keys: dict[str, str], users: list[str]) -> None:
    assert names(image, keys) == users


def test_configurations_are_searched_in_order_and_each_credential_is_used_once() -> None:
    assert names("r.example/a", {"r.example": "one"}, {"r.example/a": "two", "r.example": "one"}) == ["one", "two"]


def test_credential_helpers_get_the_host_or_dockers_own_address() -> None:
    assert server_of(parsed("busybox")) == "https://index.docker.io/v1/"
    assert server_of(parsed("reg.example:5000/app")) == "reg.example:5000"


def test_each_type_of_secret_is_read_by_its_own_field() -> None:
    entry = {"a": {"auth": auth("u")}}
    expected = {"a": Credential(username="u", password="p")}
    whole, bare = json.dumps({"auths": entry}).encode(), json.dumps(entry).encode()
    assert of_secret("kubernetes.io/dockerconfigjson", {".dockerconfigjson": whole, "x": b""}).keys == expected
    assert of_secret("kubernetes.io/dockercfg", {".dockercfg": bare}).keys == expected
    with pytest.raises(BadDockerConfig):
        of_secret("kubernetes.io/dockercfg", {".dockerconfigjson": whole})
