"""Parsers for setting values from flags, the environment and files.

Input: `what`, where the value was found (for the error), and the raw value. Output: the parsed value, or
`SettingsError`.
Next: `table`, which names a parser for each setting.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from chronolet.kernel.storage.redis import urls


class SettingsError(ValueError):
    """A setting cannot be used. The message names the setting, what was found and what was expected."""


class Secret(str):
    """Text whose `repr` is masked, so that tracebacks and log lines do not reveal it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def text(what: str, value: Any) -> str:
    """Parse non-empty text; surrounding white space is stripped."""
    if not isinstance(value, str) or not value.strip():
        raise SettingsError(f"{what}: found {value!r}, expected text")
    return value.strip()


def any_text(what: str, value: Any) -> str:
    """Parse text, which may be empty."""
    return "" if value == "" else text(what, value)


_PROCESS_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def process_name(what: str, value: Any) -> str:
    """Parse the name of a process, which is also the name of a file and a part of Redis keys; or an empty one."""
    found = any_text(what, value)
    if found and not _PROCESS_NAME.fullmatch(found):
        raise SettingsError(
            f"{what}: found {value!r}, expected at most 63 letters, digits, '-', '_' or '.', beginning and ending with"
            " a letter or digit"
        )
    return found


def boolean(what: str, value: Any) -> bool:
    """Parse `true` or `false`, as a bool or as text."""
    found = {"true": True, "false": False}.get(str(value).strip().lower())
    if found is None:
        raise SettingsError(f"{what}: found {value!r}, expected true or false")
    return found


def number(low: int, high: int) -> Callable[[str, Any], int]:
    """Return a parser for whole numbers from `low` to `high`."""

    def parse(what: str, value: Any) -> int:
        found = None if isinstance(value, bool) else _whole_number(str(value).strip())
        if found is None or not low <= found <= high:
            raise SettingsError(f"{what}: found {value!r:.80}, expected a whole number from {low} to {high}")
        return found

    return parse


_MOST_DIGITS = 18
"""Python parses no number of more than some thousand digits, and no setting has a number that long."""


def _whole_number(digits: str) -> int | None:
    """Parse a number of 0 or more; None if `digits` is not one, or if it is above 10 ** 18."""
    if not digits.isascii() or not digits.isdigit() or len(digits.lstrip("0")) > _MOST_DIGITS:
        return None
    return int(digits.lstrip("0") or "0")


def unlimited(high: int) -> Callable[[str, Any], int]:
    """Return a parser for whole numbers up to `high`; 0 and -1 both mean no limit and are parsed as 0."""

    def parse(what: str, value: Any) -> int:
        return 0 if str(value).strip() == "-1" else number(0, high)(what, value)

    return parse


def cgroup(what: str, value: Any) -> str:
    """Parse a cgroup path (`/a/b`) or a slice name (`a-b.slice`); both become `/a/b`."""
    written = any_text(what, value)
    parts = [one for one in written.removesuffix(".slice").split("/") if one]
    if any(one in (".", "..") for one in parts):
        raise SettingsError(f"{what}: found {value!r}, expected the path of a cgroup such as /machines")
    if written.endswith(".slice"):
        parts = parts[-1].split("-")
    return "".join(f"/{one}" for one in parts)


def quantities_of(separator: str, *names: str, shares: bool = False) -> Callable[[str, Any], dict[str, str]]:
    """Return a parser for amounts by name, comma-separated (`cpu=200m,memory=1Gi`) or as a map. `names` are the
    accepted names; a `*` at the end of one matches any suffix.

    An amount is a quantity of 0 or more; if `shares` is set, percentages are also accepted.
    """

    def parse(what: str, value: Any) -> dict[str, str]:
        found = value if isinstance(value, dict) else pairs(what, str(value), separator)
        for name, amount in found.items():
            if not any(name == one or (one.endswith("*") and name.startswith(one[:-1])) for one in names):
                raise SettingsError(f"{what}: found {name!r}, expected some of {', '.join(names)}")
            _check_amount(f"{what}: {name}", str(amount).removesuffix("%") if shares else str(amount))
        return {name: str(amount) for name, amount in found.items()}

    return parse


def pairs(what: str, value: str, separator: str) -> dict[str, str]:
    """Parse comma-separated `name=text` pairs into a dict."""
    found = {}
    for pair in filter(None, (one.strip() for one in value.split(","))):
        name, mark, amount = pair.partition(separator)
        if not mark:
            raise SettingsError(f"{what}: found {pair!r}, expected pairs such as name{separator}amount")
        found[name.strip()] = amount.strip()
    return found


def _check_amount(what: str, amount: str) -> None:
    from chronolet.rules.resources import quantities  # noqa: PLC0415 - few settings are quantities

    try:
        if quantities.parse(amount) >= 0:
            return
    except quantities.QuantityError as error:
        raise SettingsError(f"{what}: {error}") from error
    raise SettingsError(f"{what}: found {amount!r}, expected 0 or more")


def part(what: str, value: Any) -> float | None:
    """Parse a fraction above 0 and up to 1; None if the value is empty."""
    if value is None or value == "":
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = 0.0
    if not 0 < found <= 1:
        raise SettingsError(f"{what}: found {value!r}, expected a number above 0 and up to 1")
    return found


def one_of(*choices: str) -> Callable[[str, Any], str]:
    """Return a parser that accepts exactly one of `choices`."""

    def parse(what: str, value: Any) -> str:
        if value not in choices:
            raise SettingsError(f"{what}: found {value!r}, expected one of {', '.join(choices)}")
        return str(value)

    return parse


_LONGEST_MILLISECONDS = 2**63 // 1_000_000
"""The longest Go duration, about 292 years."""
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def duration(what: str, value: Any) -> int:
    """Parse a Go duration of at least one millisecond (`10s`, `1m30s`, `500ms`) into milliseconds."""
    total = _milliseconds(value)
    if total is None or total < 1:
        raise SettingsError(f"{what}: found {value!r}, expected a duration above zero such as 10s or 1m30s")
    return total


def duration_between(least: int, most: int) -> Callable[[str, Any], int]:
    """Return a parser of Go durations within these bounds, in milliseconds: whole seconds only."""

    def parse(what: str, value: Any) -> int:
        total = _milliseconds(value)
        if total is None or not least <= total <= most or total % 1000:
            bounds = f"from {least // 1000}s to {most // 1000}s"
            raise SettingsError(f"{what}: found {value!r}, expected a duration in whole seconds {bounds}")
        return total

    return parse


def duration_or_none(what: str, value: Any) -> int:
    """Parse a Go duration of zero or more into milliseconds; `0` needs no unit."""
    total = 0 if str(value).strip() == "0" else _milliseconds(value)
    if total is None:
        raise SettingsError(f"{what}: found {value!r}, expected a duration such as 0s, 10s or 1m30s")
    return total


def _milliseconds(value: Any) -> int | None:
    """Parse a Go duration in h, m, s and ms into milliseconds; None if `value` is not one."""
    rest, total = str(value).strip(), 0.0
    if not rest:
        return None
    while rest:
        digits = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        unit = next((unit for unit in ("ms", "s", "m", "h") if rest[len(digits) :].startswith(unit)), "")
        if not unit or not digits.replace(".", "", 1).isdigit():
            return None
        total += float(digits) * _UNITS[unit]
        rest = rest[len(digits) + len(unit) :]
    return int(total) if total <= _LONGEST_MILLISECONDS else None


def count_or_any(what: str, value: Any) -> int:
    """Parse a whole number; any negative number becomes -1, which means no limit."""
    digits = str(value).strip()
    found = None if isinstance(value, bool) else _whole_number(digits.removeprefix("-"))
    if found is None:
        raise SettingsError(f"{what}: found {value!r:.80}, expected a whole number, negative for no limit")
    return max(-found, -1) if digits.startswith("-") else found


def texts(what: str, value: Any) -> tuple[str, ...]:
    """Parse comma-separated words, or a list of words."""
    words = value if isinstance(value, list) else str(value).split(",")
    return tuple(text(what, word) for word in words)


def some_of(*choices: str) -> Callable[[str, Any], tuple[str, ...]]:
    """Return a parser for one or more comma-separated words; it returns each word once, in the order of `choices`."""

    def parse(what: str, value: Any) -> tuple[str, ...]:
        names = {name.strip() for name in text(what, value).split(",") if name.strip()}
        if not names or not names <= set(choices):
            raise SettingsError(f"{what}: found {value!r}, expected some of {', '.join(choices)}")
        return tuple(name for name in choices if name in names)

    return parse


def listed(*choices: str) -> Callable[[str, Any], tuple[str, ...]]:
    """Like `some_of`, but the parser also accepts a list or an empty value."""

    def parse(what: str, value: Any) -> tuple[str, ...]:
        written = value if isinstance(value, str) else ",".join(map(str, value or ()))
        return some_of(*choices)(what, written) if written else ()

    return parse


def folder(what: str, value: Any) -> Path:
    """Parse a path and make it absolute; `~` is the home folder."""
    return Path(text(what, value)).expanduser().absolute()


def archive_place(what: str, value: Any) -> str:
    """Parse a folder, which is made absolute, or the URL of a bucket, `s3://BUCKET` or `s3://BUCKET/PREFIX`."""
    found = text(what, value)
    scheme, mark, rest = found.partition("://")
    if not mark:
        return str(folder(what, found))
    parts = urlsplit(found)
    bare = not (parts.query or parts.fragment or "@" in rest or ":" in parts.netloc)
    if scheme != "s3" or not parts.netloc or not bare:
        raise SettingsError(
            f"{what}: found {scheme}://..., expected a folder or s3://BUCKET/PREFIX; the endpoint, the region and the"
            " credentials are those of the AWS_* environment variables"
        )
    return found


def folders(what: str, value: Any) -> tuple[Path, ...]:
    """Parse comma-separated paths, or a list of paths, as `folder` does. The list may be empty."""
    found = value if isinstance(value, list) else [part for part in any_text(what, value).split(",") if part.strip()]
    return tuple(folder(what, one) for one in found)


def secret_file(what: str, value: Any) -> Path:
    """Parse the path of a file that holds one secret; `read_secret` reads the file."""
    return folder(what, value)


SECRET_BYTES = 4096


def read_secret(what: str, path: Path) -> Secret:
    """Read the only line of a file, without its line break. Raises SettingsError."""
    try:
        with path.open("rb") as file:
            found = file.read(SECRET_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{what}: {path}: cannot be read: {error.strerror or error}") from error
    line = found.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
    if not line or len(found) > SECRET_BYTES or not line.isprintable() or "\ufffd" in line:
        raise SettingsError(f"{what}: {path}: expected one line of UTF-8 text, at most {SECRET_BYTES} bytes")
    return Secret(line)


_WEB = ("http", "https")


def _is_complete(found: str) -> bool:
    """Return whether the URL's port, if given, is valid; an http(s) URL must also have a host, and for another scheme
    the Redis database, if given, must be numeric.
    """
    try:
        parts = urlsplit(found)
        if parts.scheme in _WEB:
            return parts.port != 0 and bool(parts.hostname)
        return parts.port != 0 and all(db.isdigit() for db in parse_qs(parts.query).get("db", []))
    except ValueError:
        return False


def _is_escaped(found: str) -> bool:
    """Return whether path and query have only characters that a request line may contain."""
    parts = urlsplit(found)
    return all("!" <= one <= "~" for one in f"{parts.path}{parts.query}")


def redis_server(what: str, value: Any) -> str:
    """Parse the URL of a Redis server; errors never show anything that may be its password."""
    found = text(what, value)
    try:
        urls.check(found)
    except urls.RedisUrlError as error:
        raise SettingsError(f"{what}: the URL {error}") from None
    return found


def _shown(found: str) -> str:
    """Format a refused URL for an error: masked if it may contain a password."""
    return "a URL that cannot be parsed" if any(mark in found for mark in "@?#") else repr(found)


def url(*schemes: str) -> Callable[[str, Any], str]:
    """Return a parser for URLs with one of these schemes."""

    def parse(what: str, value: Any) -> str:
        found = text(what, value)
        scheme, _, rest = found.partition("://")
        if scheme not in schemes or not rest or not _is_complete(found):
            raise SettingsError(f"{what}: found {_shown(found)}, expected a URL such as {schemes[0]}://...")
        if scheme in _WEB and not _is_escaped(found):
            # The URL is not shown: its path or query may be secret.
            raise SettingsError(f"{what}: found a character that URLs cannot contain, expected it escaped, as in %20")
        return found

    return parse
