"""Parses image names as Docker does. Pure.

Input: an image name from a manifest. Output: registry, repository, tag and digest, or `BadImageName` with Docker's
message. Next: the `pod` actor's image worker, `registry_keys`, the Docker adapter. Source: distribution's reference
package and pkg/util/parsers/parsers.go.
"""

from __future__ import annotations

import re

import msgspec

DOCKER_HUB = "docker.io"

_HEX_64 = re.compile(r"[a-f0-9]{64}")
_COMPONENT = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = re.compile(rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_LONGEST = 255


class BadImageName(ValueError):  # noqa: N818 - a fact about a manifest's text
    """The text is not a valid image name; the message is Docker's."""


class ImageName(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed image name. `domain`: the registry's host and port; `tag`: empty only if there is a digest."""

    domain: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """The full repository name, such as `docker.io/library/busybox`."""
        return f"{self.domain}/{self.path}"

    @property
    def version(self) -> str:
        """The version to pull: the digest if there is one, else the tag."""
        return self.digest or self.tag


def parsed(text: str) -> ImageName:
    """Parse an image name; the tag defaults to `latest` if there is no digest. Raises BadImageName."""
    if _HEX_64.fullmatch(text):
        raise BadImageName(f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings")
    domain, rest = _split(text)
    name, _, digest = rest.partition("@")
    path, colon, tag = name.partition(":")
    if path != path.lower():
        raise BadImageName(f"invalid reference format: repository name ({path}) must be lowercase")
    wrong = (
        not _DOMAIN.fullmatch(domain)
        or not _PATH.fullmatch(path)
        or (bool(colon) and not _TAG.fullmatch(tag))
        or ("@" in rest and not _DIGEST.fullmatch(digest))
    )
    if wrong:
        raise BadImageName("invalid reference format")
    if len(path) > _LONGEST:
        raise BadImageName(f"repository name must not be more than {_LONGEST} characters")
    return ImageName(domain=domain, path=path, tag=tag if colon or digest else "latest", digest=digest)


def _split(text: str) -> tuple[str, str]:
    """Split off the registry. Unless the first part has a dot or a port or is `localhost`, the whole name is a path on
    Docker Hub.
    """
    first, slash, rest = text.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first, rest = DOCKER_HUB, text
    if first == f"index.{DOCKER_HUB}":
        first = DOCKER_HUB
    if first == DOCKER_HUB and "/" not in rest:
        rest = f"library/{rest}"
    return first, rest
