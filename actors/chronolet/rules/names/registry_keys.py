"""Selects the registry credentials for an image. Pure.

Input: Docker configurations as bytes (from Secrets, or from the configuration file of the agent's user), an image's
name. Output: credentials, in the order to try them. Next: `adapters.images.registry_keys`, and the manifest reader,
which rejects unreadable configurations. Source: pkg/credentialprovider/config.go and keyring.go. No error message or
`repr` reveals a value.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from chronolet.rules.names.image_names import DOCKER_HUB, ImageName

HUB_KEY: Final = f"index.{DOCKER_HUB}"
"""Docker Hub's normalized key; in configurations, it is written `https://index.docker.io/v1/`."""


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials for a registry: a username and password, or a token."""

    username: str = ""
    password: str = ""
    identity_token: str = ""
    registry_token: str = ""

    def __repr__(self) -> str:
        return "Credential(...)"


class DockerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed `config.json`. `keys`: credentials by key; `helpers`: the credential helper for each host; `store`: the
    credential helper for all other hosts.
    """

    keys: Mapping[str, Credential] = {}
    helpers: Mapping[str, str] = {}
    store: str = ""


class BadDockerConfig(ValueError):  # noqa: N818 - a fact about a file
    """The configuration cannot be parsed; the message states where and why, without its contents."""


class _Entry(msgspec.Struct):
    username: str = ""
    password: str = ""
    auth: str = ""
    identitytoken: str = ""
    registrytoken: str = ""


class _Config(msgspec.Struct):
    auths: dict[str, _Entry | None] | None = None
    credHelpers: dict[str, str] | None = None  # noqa: N815 - Docker's spelling
    credsStore: str = ""  # noqa: N815 - Docker's spelling


_config = msgspec.json.Decoder(_Config)
_entries = msgspec.json.Decoder(dict[str, _Entry | None])


def docker_config(content: bytes) -> DockerConfig:
    """Parse a `config.json`, the content of `.dockerconfigjson`. Raises BadDockerConfig."""
    try:
        found = _config.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadDockerConfig(_where(error)) from None
    return DockerConfig(
        keys=_credentials(found.auths or {}, "auths"), helpers=found.credHelpers or {}, store=found.credsStore
    )


def dockercfg(content: bytes) -> DockerConfig:
    """Parse the older format, which contains only the credentials by key. Raises BadDockerConfig."""
    try:
        found = _entries.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadDockerConfig(_where(error)) from None
    return DockerConfig(keys=_credentials(found, ""))


SECRETS: Final[Mapping[str, tuple[str, Callable[[bytes], DockerConfig]]]] = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson", docker_config),
    "kubernetes.io/dockercfg": (".dockercfg", dockercfg),
}
"""For each Secret type, the field that contains the configuration, and its parser."""


def of_secret(type_: str, data: Mapping[str, bytes]) -> DockerConfig:
    """Parse the configuration in a Secret of one of the types in `SECRETS`. Raises BadDockerConfig."""
    field, read = SECRETS[type_]
    return read(data.get(field, b""))


def _where(error: Exception) -> str:
    """Return a message that reveals no value: a decoder's errors contain only types, but a Unicode error would contain
    the bytes.
    """
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


def _credentials(entries: Mapping[str, _Entry | None], above: str) -> Mapping[str, Credential]:
    found = {
        key: _credential(entry, f"{above}[{key!r}].auth" if above else f"[{key!r}].auth")
        for key, entry in entries.items()
        if entry is not None
    }
    return {key: one for key, one in found.items() if one != Credential()}


def _credential(entry: _Entry, path: str) -> Credential:
    username, password = entry.username, entry.password
    if entry.auth:
        username, password = _decoded(entry.auth, path)
    return Credential(
        username=username,
        password=password,
        identity_token=entry.identitytoken,
        registry_token=entry.registrytoken,
    )


def _decoded(auth: str, path: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(auth + "=" * (-len(auth) % 4), validate=True).decode()
    except ValueError:
        raise BadDockerConfig(f"{path}: is not base64") from None
    name, colon, password = text.partition(":")
    if not colon:
        raise BadDockerConfig(f"{path}: is not the base64 of name:password")
    return name, password.strip("\0")  # Docker pads the password with NULs


def matching(configs: Iterable[Mapping[str, Credential]], image: ImageName) -> Sequence[Credential]:
    """Return the credentials that match an image, without duplicates, in the order of `configs`; within a
    configuration, those with the most specific key come first. An image of Docker Hub that no key matches gets the
    credentials for `HUB_KEY`.
    """
    found: dict[Credential, None] = {}
    for config in configs:
        keys = sorted(((_key(key), one) for key, one in config.items()), key=lambda pair: pair[0], reverse=True)
        fits = [one for key, one in keys if _fits(key, image.repository)]
        if not fits and image.domain == DOCKER_HUB:
            fits = [one for key, one in keys if key == HUB_KEY]
        found.update(dict.fromkeys(fits))
    return tuple(found)


def server_of(image: ImageName) -> str:
    """Return the server name to pass to a credential helper."""
    return f"https://{HUB_KEY}/v1/" if image.domain == DOCKER_HUB else image.domain


def _key(key: str) -> str:
    """Normalize a key to a host and path; `https://index.docker.io/v1/` becomes only the host."""
    rest = key.removeprefix("https://").removeprefix("http://")
    host, _, path = rest.partition("/")
    path = f"/{path}"
    if path.startswith(("/v1/", "/v2/")):
        path = path[3:]
    return host if path == "/" else f"{host}{path}"


def _fits(key: str, repository: str) -> bool:
    """Return whether a key matches a repository: each label of the host matches, with wildcards `*` and `?`; the ports
    are the same; and the key's path is a prefix of the repository's.
    """
    host, _, path = key.partition("/")
    registry, _, image = repository.partition("/")
    name, port = _with_port(host)
    own, own_port = _with_port(registry)
    parts, own_parts = name.split("."), own.split(".")
    if port != own_port or len(parts) != len(own_parts) or not image.startswith(path):
        return False
    return all(fnmatchcase(mine, pattern) for pattern, mine in zip(parts, own_parts, strict=True))


def _with_port(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and port.isdigit() else (host, "")
