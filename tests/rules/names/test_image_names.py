"""Image names in manifests, and the form to which they are normalized for Docker."""

import pytest

from chronolet.rules.names.image_names import BadImageName, ImageName, parsed

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    ("text", "domain", "path", "tag", "digest"),
    [
        ("busybox", "docker.io", "library/busybox", "latest", ""),
        ("busybox:1.36", "docker.io", "library/busybox", "1.36", ""),
        ("team/app", "docker.io", "team/app", "latest", ""),
        ("docker.io/busybox", "docker.io", "library/busybox", "latest", ""),
        ("index.docker.io/team/app:a_B-1.2", "docker.io", "team/app", "a_B-1.2", ""),
        ("localhost/app", "localhost", "app", "latest", ""),
        ("127.0.0.1:5000/a/b/c:1", "127.0.0.1:5000", "a/b/c", "1", ""),
        ("[::1]:5000/app", "[::1]:5000", "app", "latest", ""),
        ("quay.io/a__b/c-d.e", "quay.io", "a__b/c-d.e", "latest", ""),
        (f"busybox@{DIGEST}", "docker.io", "library/busybox", "", DIGEST),
        (f"reg.example/app:2@{DIGEST}", "reg.example", "app", "2", DIGEST),
    ],
)
def test_valid_names_are_normalized(text: str, domain: str, path: str, tag: str, digest: str) -> None:
    found = parsed(text)
    assert found == ImageName(domain=domain, path=path, tag=tag, digest=digest)
    assert found.repository == f"{domain}/{path}"
    assert found.version == (digest or tag)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "invalid reference format"),
        ("<your-image>", "invalid reference format"),
        ("Busybox", "repository name (library/Busybox) must be lowercase"),
        ("Team/app", "repository name (Team/app) must be lowercase"),
        ("a b", "invalid reference format"),
        ("busybox:", "invalid reference format"),
        ("busybox:-x", "invalid reference format"),
        ("busybox@sha256:12", "invalid reference format"),
        ("busybox@", "invalid reference format"),
        ("reg.example:x/app", "invalid reference format"),
        ("a//b", "invalid reference format"),
        ("0a" * 32, "64-byte hexadecimal"),
        ("reg.example/" + "a" * 256, "more than 255 characters"),
    ],
)
def test_invalid_names_are_refused(text: str, words: str) -> None:
    with pytest.raises(BadImageName) as refusal:
        parsed(text)
    assert words in str(refusal.value)
