"""Expands `$(NAME)` in commands, arguments and environment values. Pure.

Input: text and the variables known so far. Output: text. `$$` becomes one `$`, so `$$(NAME)` becomes `$(NAME)`;
references to unknown names are not changed. The size of the result is not limited here: `expanded_sizes` checks it
first.
Source: third_party/forked/golang/expansion/expand.go, pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from chronolet_schemas.podspec import EnvVar, EnvVarSource

# Matches an escape (`$$`) or a closed reference, from left to right. A lone `$` and an unclosed `$(` do not match.
REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace each `$(NAME)` whose name is known; the values are not expanded again."""

    def replacement(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else variables.get(found[1], found[0])

    return REFERENCE.sub(replacement, text)


class MissingVariableError(ValueError):
    """A required variable is unknown; the message is the kubelet's."""


def expand_known(text: str, variables: Mapping[str, str]) -> str:
    """Like `expand`, but raises MissingVariableError for an unknown name."""
    for found in REFERENCE.finditer(text):
        if found[1] is not None and found[1] not in variables:
            raise MissingVariableError(f'missing value for "{found[1]}"')
    return expand(text, variables)


def environment(variables: Iterable[EnvVar], resolved: Callable[[EnvVarSource], str] = lambda _: "") -> dict[str, str]:
    """Build a container's environment. Each value may refer to earlier variables; of variables with the same name, the
    last one wins.

    `resolved` resolves `valueFrom` references; their values are not expanded.
    """
    known: dict[str, str] = {}
    for variable in variables:
        source = variable.value_from
        known[variable.name] = expand(variable.value, known) if source is None else resolved(source)
    return known


def expand_all(texts: Iterable[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Expand each word of a command or argument list."""
    return tuple(expand(text, variables) for text in texts)
