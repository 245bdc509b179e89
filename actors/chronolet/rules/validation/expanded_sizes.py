"""Computes the expanded size of a container's environment, command and arguments without expanding them. Pure.

Input: a container's definition, the values of its references. Output: sizes in bytes, or `TooLargeError`.
Next: `expansion` expands texts that are not too large; `size_findings` reports the others to `apply` and to the `pod`
decider.

Each `$(NAME)` may expand to text built from many other references, so sizes can grow exponentially with the number of
variables while the manifest stays small. The check counts bytes and stops at the first string above its limit, so that
its own work is bounded. The limits are Linux's MAX_ARG_STRLEN (fs/exec.c: maximum length of one execve string) and a
total below Linux's ARG_MAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from chronolet.rules.expansion import REFERENCE
from chronolet_schemas.podspec import Container, EnvVar, EnvVarSource

MAX_STRING_BYTES = 128 * 1024
"""Maximum size of one variable (`NAME=value`), one command word or one argument, including the terminating NUL."""
MAX_TOTAL_BYTES = 1024 * 1024
"""Maximum size of all these strings of a container together; also of a probe's command, and of all downwardAPI files of
a pod.
"""
MAX_PATH_BYTES = 4096
"""Maximum size of an expanded subPathExpr: Linux's PATH_MAX."""

Sizes = Mapping[str, int]
"""Size in bytes of each variable's value, by name."""

_END = 1  # the terminating NUL
_EQUALS = 1


class TooLargeError(ValueError):
    """An expanded text, or the total of several, is above its limit. `path`: its path below what is checked (a
    container, the action of a probe, the spec); empty for the total of a container, and for a variable of a device
    plugin.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def text_bytes(text: str) -> int:
    """Return the size of a text in UTF-8; a lone surrogate, which no manifest can contain, counts as three bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def expanded_bytes(text: str, sizes: Sizes) -> int:
    """Return the size of `expansion.expand(text, variables)`. `sizes`: the sizes of the variables' values."""
    total = text_bytes(text)
    for found in REFERENCE.finditer(text):
        if found[1] is None:
            total -= 1  # two characters become one `$`
        elif found[1] in sizes:
            total += sizes[found[1]] - text_bytes(found[0])
    return total


def environment_sizes(
    variables: Iterable[EnvVar], resolved: Callable[[EnvVarSource], str], given: Mapping[str, str] = {}
) -> Sizes:
    """Return the sizes of the values that `expansion.environment` returns, and of the variables `given` by device
    plugins.

    Raises TooLargeError at the first variable that is too large.
    """
    known: dict[str, int] = {}
    for index, variable in enumerate(variables):
        source = variable.value_from
        size = expanded_bytes(variable.value, known) if source is None else text_bytes(resolved(source))
        _string(f"env[{index}]", f"variable {variable.name}", _variable_bytes(variable.name, size))
        known[variable.name] = size
    outside = {name: text_bytes(value) for name, value in given.items() if name not in known}
    for name, size in outside.items():
        _string("", f"variable {name} of a device plugin", _variable_bytes(name, size))
    return {**outside, **known}


def check(definition: Container, sizes: Sizes) -> None:
    """Check each word of a container's command and arguments, and the total of all strings. Raises TooLargeError."""
    total = sum(_variable_bytes(name, size) for name, size in sizes.items())
    total += words_bytes("command", definition.command, sizes) + words_bytes("args", definition.args, sizes)
    if total > MAX_TOTAL_BYTES:
        message = f"environment, command and arguments together have {total} bytes once expanded, {_above_total()}"
        raise TooLargeError("", message)


def words_bytes(field: str, words: Iterable[str], sizes: Sizes) -> int:
    """Return the total size of what `expansion.expand_all` returns. Raises TooLargeError at the first word that is too
    large.
    """
    total = 0
    for index, word in enumerate(words):
        size = expanded_bytes(word, sizes) + _END
        _string(f"{field}[{index}]", "this word", size)
        total += size
    return total


def check_words(field: str, words: Iterable[str], sizes: Sizes) -> None:
    """Check the size of each word of a command, and their total size. Raises TooLargeError."""
    total = words_bytes(field, words, sizes)
    if total > MAX_TOTAL_BYTES:
        raise TooLargeError(field, f"{total} bytes once expanded, {_above_total()}")


def check_path(path: str, text: str, sizes: Sizes) -> None:
    """Check that an expanded subPathExpr fits into PATH_MAX. Raises TooLargeError."""
    size = expanded_bytes(text, sizes)
    if size > MAX_PATH_BYTES:
        raise TooLargeError(path, f"{size} bytes once expanded, above {MAX_PATH_BYTES}, Linux's limit for a path")


def _variable_bytes(name: str, size: int) -> int:
    return text_bytes(name) + _EQUALS + size + _END


def _string(path: str, what: str, size: int) -> None:
    if size > MAX_STRING_BYTES:
        message = f"{what} has {size} bytes once expanded, above {MAX_STRING_BYTES}, Linux's limit for one string"
        raise TooLargeError(path, message)


def _above_total() -> str:
    return f"above {MAX_TOTAL_BYTES}, the limit for one container; shorten the values or mount them as a file"
