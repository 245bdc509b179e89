"""`$(NAME)` in commands, arguments and environment values. Pure.

Input: text and the variables known so far. Output: text. `$$` stands for one `$`, so `$$(NAME)` stays `$(NAME)`;
a name that is not known stays as it was written. Nothing here bounds what is built: `expanded_sizes` checks it before.
Answers to: third_party/forked/golang/expansion/expand.go, pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from chronolet_schemas.podspec import EnvVar, EnvVarSource

# Left to right, without overlap: an escape, else a closed reference. A lone `$` and an unclosed `$(` match nothing.
REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with each known `$(NAME)` replaced; what replaces it is not looked at again."""

    def replacement(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else variables.get(found[1], found[0])

    return REFERENCE.sub(replacement, text)


class MissingVariableError(ValueError):
    """A reference that must be known is not; the message is the kubelet's."""


def expand_known(text: str, variables: Mapping[str, str]) -> str:
    """As `expand`, for what must not be left as it was written. Raises MissingVariableError."""
    for found in REFERENCE.finditer(text):
        if found[1] is not None and found[1] not in variables:
            raise MissingVariableError(f'missing value for "{found[1]}"')
    return expand(text, variables)


def environment(variables: Iterable[EnvVar], resolved: Callable[[EnvVarSource], str] = lambda _: "") -> dict[str, str]:
    """The environment of a container: each value sees the variables written before it; the last of equal names wins.

    `resolved` says what a reference stands for; nothing is expanded in that.
    """
    known: dict[str, str] = {}
    for variable in variables:
        source = variable.value_from
        known[variable.name] = expand(variable.value, known) if source is None else resolved(source)
    return known


def expand_all(texts: Iterable[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """A command or argument list, each word expanded."""
    return tuple(expand(text, variables) for text in texts)
