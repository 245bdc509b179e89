"""Validates names by the rules of Kubernetes, and builds the names of containers. Pure.

Input: text. Output: None if a name is valid, else the problem and what was expected.
Source: staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go, pkg/kubelet/dockershim/naming.go.
"""

from __future__ import annotations

import re

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
PORT_NAME_LENGTH = 15
KEY_NAME_LENGTH = 63

SANDBOX = "POD"
"""The container name of a pod's sandbox."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_ENV = re.compile(r"[ -<>-~]+")
_PORT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def container_name(*, container: str, pod: str, namespace: str, uid: str, attempt: int) -> str:
    """Return the Docker name of one attempt of a container; for the pod's sandbox, `container` is `SANDBOX`.

    No part contains `_`, so no two attempts have the same name. A container's owner is read from its labels, not from
    its name.
    """
    return f"chrono_{container}_{pod}_{namespace}_{uid}_{attempt}"


def label_problem(name: str) -> str | None:
    """Check a DNS label (RFC 1123), such as the name of a container, volume or namespace."""
    return _problem(
        name, _LABEL, LABEL_LENGTH, "lower-case letters, digits and '-', beginning and ending with a letter or digit"
    )


def subdomain_problem(name: str) -> str | None:
    """Check a DNS subdomain (RFC 1123), such as the name of a pod or of most other objects."""
    return _problem(
        name,
        _SUBDOMAIN,
        SUBDOMAIN_LENGTH,
        "lower-case letters, digits, '-' and '.', each part beginning and ending with a letter or digit",
    )


def env_problem(name: str) -> str | None:
    """Check the name of an environment variable: printable ASCII without '='."""
    return _problem(name, _ENV, None, "printable ASCII characters other than '='")


def port_problem(name: str) -> str | None:
    """Check the name of a port (an IANA service name)."""
    expected = "lower-case letters, digits and single '-' between them, with at least one letter"
    if name and not any(character.isalpha() for character in name):
        return f"{_cut(name)} is not allowed, expected {expected}"
    return _problem(name, _PORT, PORT_NAME_LENGTH, expected)


def label_value_problem(value: str) -> str | None:
    """Check the value of a label, which may be empty."""
    expected = "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
    return _problem(value, _QUALIFIED, LABEL_LENGTH, expected) if value else None


def qualified_problem(key: str) -> str | None:
    """Check the key of a label or annotation, or a resource name: `name` or `example.com/name`."""
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
