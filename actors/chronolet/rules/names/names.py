"""The names that Kubernetes allows, and the names of our containers. Pure.

Input: text. Output: None if a name is fine, else what is wrong with it and what was expected.
Answers to: staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go, pkg/kubelet/dockershim/naming.go.
"""

from __future__ import annotations

import re

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
PORT_NAME_LENGTH = 15
KEY_NAME_LENGTH = 63

SANDBOX = "POD"
"""What stands for the container in the name of a pod's sandbox."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ENV = re.compile(r"[ -<>-~]+")
_PORT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def container_name(*, container: str, pod: str, namespace: str, uid: str, attempt: int) -> str:
    """The name of one attempt of a container on Docker; `SANDBOX` as container names the pod's sandbox.

    None of its parts has a `_`, so no two attempts share a name. Whose a container is its labels say, not its name.
    """
    return f"chrono_{container}_{pod}_{namespace}_{uid}_{attempt}"


def label_problem(name: str) -> str | None:
    """A DNS label (RFC 1123): names of containers, volumes, namespaces."""
    return _problem(
        name, _LABEL, LABEL_LENGTH, "lower-case letters, digits and '-', beginning and ending with a letter or digit"
    )


def subdomain_problem(name: str) -> str | None:
    """A DNS subdomain (RFC 1123): names of pods and of most objects."""
    return _problem(
        name,
        _SUBDOMAIN,
        SUBDOMAIN_LENGTH,
        "lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit",
    )


def env_problem(name: str) -> str | None:
    """The name of an environment variable: printable ASCII without '='."""
    return _problem(name, _ENV, None, "printable ASCII characters other than '='")


def port_problem(name: str) -> str | None:
    """The name of a port (an IANA service name)."""
    expected = "lower-case letters, digits and single '-' between them, with at least one letter"
    if name and not any(character.isalpha() for character in name):
        return f"{_cut(name)} is not allowed, expected {expected}"
    return _problem(name, _PORT, PORT_NAME_LENGTH, expected)


def label_value_problem(value: str) -> str | None:
    """The value of a label, which may be empty."""
    expected = "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
    return _problem(value, _QUALIFIED, LABEL_LENGTH, expected) if value else None


def qualified_problem(key: str) -> str | None:
    """The key of a label or annotation, or the name of a resource: `name` or `example.com/name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and (problem := subdomain_problem(prefix)):
        return f"prefix {problem}"
    return _problem(
        name,
        _QUALIFIED,
        KEY_NAME_LENGTH,
        "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
    )


def _problem(name: str, shape: re.Pattern[str], longest: int | None, expected: str) -> str | None:
    if not name:
        return f"is empty, expected {expected}"
    if longest is not None and len(name) > longest:
        return f"{name[:longest]!r}... has {len(name)} characters, expected at most {longest}"
    if not shape.fullmatch(name):
        return f"{_cut(name)} is not allowed, expected {expected}"
    return None


def _cut(name: str) -> str:
    return repr(name) if len(name) <= SUBDOMAIN_LENGTH else f"{name[:SUBDOMAIN_LENGTH]!r}..."
