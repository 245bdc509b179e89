"""The rules that say which texts of a log may be secrets. docs/bundles.md lists them by name.

Input: a text, and the name under which it stands. Output: which parts of it are secret. Pure; each rule can be tested
by itself. Next: `redaction`, which applies them to events and states.

Values that a user gave to a container are secret unless nothing can hide in them. Other texts are mostly the agent's,
the engine's and the probes' words: there, only what looks like a secret is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

import msgspec

VERSION = 2
"""Incremented with each change of a rule. The manifest of a bundle names it."""

RULES: Mapping[str, str] = {
    "env": "the value of every environment variable, in manifests and in what device plugins add",
    "arguments": "each word of a command or its arguments in which a secret can hide; any after `--token` or the like",
    "annotations": "the value of every annotation, except those that chronolet, kubectl and CDI give a meaning",
    "headers": "the value of every header of an HTTP probe or hook; plain words in Host, User-Agent and Accept stay",
    "paths": "parts of the path of an HTTP probe or hook that are no plain words, and its query",
    "sysctls": "the value of every sysctl, unless no secret can hide in it",
    "attributes": "every text in a volume whose driver gives it a meaning (csi, flexVolume, iscsi, rbd and others)",
    "named": "a value whose name has password, passwd, pwd, secret, token, credential, apikey, accesskey or the like",
    "refused": "a value in one of these places that the error about a refused manifest quotes",
    "url": "the user, the password, parameters and values of the query in a URL, and secret paths of webhooks",
    "userinfo": "the password in `user:password@host`, also in the name of an image",
    "authorization": "what follows Basic, Bearer, Digest or Token in an Authorization header, and cookies",
    "keys": "private keys in PEM, JSON Web Tokens, and the keys of AWS, GitHub, GitLab, Google, Slack and Stripe",
    "known": "what another rule or a Secret of the node named, in all other texts, names and keys, also encoded",
    "unreadable": "data of an event that is no map or nested deeply, and any bytes in a map, which may be compressed",
}
"""Every rule, in the order of the documentation."""

KEPT_HEADERS = ("accept", "connection", "host", "user-agent")

# -- names -------------------------------------------------------------------------------------------------------------
_SENSITIVE = re.compile(
    r"pass(?:word|wd|phrase|code)|(?:^|[_.-])pass$|pwd|secret|token|credential|api[_.-]?key|access[_.-]?key"
    r"|private[_.-]?key|signing[_.-]?key|encryption[_.-]?key|(?:^|[_.-])auth(?:orization)?$|cookie|(?:^|[_.-])dsn$"
    r"|connection[_.-]?string|bearer|(?:^|[_.-])key$",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"(?:[_.-]?(?:file|path|dir|folder|name|names|ref|key_ref|keyref|seconds|digest))$", re.IGNORECASE)
"""Names that end like this say where a secret is, or how long it lasts."""


@lru_cache(4096)
def is_sensitive(name: str) -> bool:
    """Return whether a value with this name is probably a secret, such as of `DB_PASSWORD` or `apiToken`."""
    return _SENSITIVE.search(name) is not None and _ABOUT.search(name) is None


class Kept(NamedTuple):
    """The names that a user exempts, as shell patterns such as `LOG_*`."""

    patterns: tuple[str, ...] = ()

    def covers(self, name: str) -> bool:
        """Return whether the name is exempt."""
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)


NOTHING_KEPT = Kept()
KEPT_ANNOTATIONS = Kept(
    ("chronolet/*", "cdi.k8s.io/*", "kubectl.kubernetes.io/default-container", "container.apparmor.*")
)


# -- words -------------------------------------------------------------------------------------------------------------
MARK = re.compile(r"<redacted-[0-9]+>")
_LEFT_OUT = re.compile(r"<[0-9]+ bytes left out>")


def is_redacted(text: str) -> bool:
    """Return whether something was taken out of a text."""
    return MARK.search(text) is not None or _LEFT_OUT.search(text) is not None


_HARMLESS = re.compile(
    r"(?:<redacted-[0-9]+>"
    r"|\$\(\w+\)|\$\w+|\$\{\w+\}"  # a reference to a variable, whose value is redacted where it is set
    r"|true|false|yes|no|on|off|none|auto|default|localhost"
    r"|[A-Za-z]{0,3}|--?|[;&|<>{}()!=]{1,2}"
    r"|[+-]?[0-9]{1,5}(?:\.[0-9]{1,3})?(?:[kKMGTP]i?B?|B|ms|us|s|m|h|d|%)?"
    r"|(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|localhost)?(?::[0-9]{1,5})?"
    r"|\.{0,2}(?:/[A-Za-z0-9_.@+-]{0,40})+)"
)


def is_harmless(word: str) -> bool:
    """Return whether no secret can hide in a word: a number, a path, an address, a reference to a variable."""
    return _HARMLESS.fullmatch(word) is not None and _random_looking.search(word) is None


_FAMILIAR = re.compile(r"(?:[A-Z]?[a-z]{1,20}){1,6}[0-9]{0,3}|[A-Z]{1,20}[0-9]{0,3}|v?[0-9]{1,5}|[a-z0-9]{1,3}")
_BETWEEN = re.compile(r"[/:.,;()\[\]@+_* -]+")
_SHORTEST_CASES = 4


def is_familiar(text: str) -> bool:
    """Return whether a name, a path or the like is made of words with at most a few digits behind them, such as
    `redis-server`, `/healthz` and `python3.11`.
    """
    return all(_FAMILIAR.fullmatch(word) and not _changes_often(word) for word in _BETWEEN.split(text) if word)


def _changes_often(word: str) -> bool:
    """Return whether the case of letters changes as in a random word, which `camelCase` does not have."""
    return len(re.findall(r"[A-Z][a-z]{0,2}(?![a-z])", word)) >= _SHORTEST_CASES


_random_looking = re.compile(r"(?:[0-9][A-Za-z]+){4}")
"""A name within a path that looks like a token: letters and digits in turn."""


def bytes_left_out(value: bytes | msgspec.msgpack.Ext) -> str:
    """Return the text that replaces bytes. They may be compressed, so that no search finds a secret in them."""
    return f"<{len(value if isinstance(value, bytes) else bytes(value.data))} bytes left out>"


class Span(NamedTuple):
    """A part of a text, from `begin` to `end`, that the rule named `rule` takes out. `sure`: its name or form says that
    it is a secret; otherwise it may be.
    """

    begin: int
    end: int
    rule: str
    sure: bool = True


_FLAG = re.compile(r"(--?[A-Za-z][A-Za-z0-9_.-]*)(?:=(.*))?", re.DOTALL)
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)=(.*)", re.DOTALL)
_USUAL_FLAG = re.compile(r"-[A-Za-z]{0,3}|--[a-z]{1,20}(?:[_.-][a-z]{1,20}){0,6}|--[A-Z]{1,20}(?:_[A-Z]{1,20}){0,6}")
"""The flags that may follow another flag, such as `-a`, whose value they could be otherwise."""
_USUAL_NAME = re.compile(r"(?:[a-z]{1,20}|[A-Z]{1,20})(?:[_.-]+(?:[a-z]{1,20}|[A-Z]{1,20})){0,8}")
"""The names in assignments. A secret in base64 may end in `=`, but has digits or letters of both cases."""
_SHORT_FLAG = 3
_PROGRAM = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]{0,99}")


def in_arguments(words: list[str], kept: Kept, *, is_command: bool) -> Iterator[tuple[int, Span]]:
    """Yield the index of each word of a command line that has a secret, and where it is in the word.

    `is_command`: the first word is the program.
    """
    before = _Before()
    for index, word in enumerate(words):
        if not (index == 0 and is_command and _PROGRAM.fullmatch(word) and is_familiar(word)):
            span, before = _in_argument(word, before, kept)
            if span is not None:
                yield index, span


class _Before(NamedTuple):
    """What the word before says about the next one."""

    sensitive: bool = False
    """It is a flag such as `--password`: the next word is secret, whatever it looks like."""
    kept: bool = False
    flag: bool = False
    """It is a flag, so the next word may be its value."""


def _in_argument(word: str, before: _Before, kept: Kept) -> tuple[Span | None, _Before]:
    flag = _FLAG.fullmatch(word) if word.startswith("-") else _ASSIGNED.fullmatch(word)
    name, value = (flag[1].lstrip("-"), flag[2]) if flag is not None else ("", None)
    exempt = kept.covers(name)
    after = _Before()
    if flag is not None and value is None:
        after = _Before(is_sensitive(name) and not exempt, exempt, flag=True)
    whole = Span(0, len(word), "arguments", before.sensitive)
    if before.sensitive and word:
        return whole, after
    if exempt or (before.kept and flag is None):
        return None, after
    if flag is None:
        return (None if is_harmless(word) else whole), after
    usual = _USUAL_FLAG if word.startswith("-") else _USUAL_NAME
    is_usual = usual.fullmatch(flag[1]) is not None or is_sensitive(name)
    if value is None:
        return _in_flag(word, before, whole, is_usual=is_usual), after
    return _in_assignment(word, before, whole, flag.start(2), is_usual=is_usual, sensitive=is_sensitive(name)), after


def _in_assignment(
    word: str, before: _Before, whole: Span, begin: int, *, is_usual: bool, sensitive: bool
) -> Span | None:
    """Return where the secret is in a word with `=`, the value of which begins at `begin`."""
    value = word[begin:]
    ends = not value.strip("=")  # as text in base64 does
    if (not is_usual and (before.flag or not word.startswith("-"))) or (ends and value):
        return whole
    if ends:
        return None if word.startswith("-") or sensitive or word[:-1].isupper() else whole
    hides = sensitive or not is_harmless(value)
    return Span(begin, len(word), "arguments", sensitive) if hides else None


def _in_flag(word: str, before: _Before, whole: Span, *, is_usual: bool) -> Span | None:
    """Return where the secret is in a word without `=` that looks like a flag."""
    if not word.startswith("--"):
        attached = len(word) > _SHORT_FLAG and not is_harmless(word[2:])
        return Span(2, len(word), "arguments", False) if attached else None
    unusual = (before.flag and not is_usual) or not is_familiar(word.lstrip("-"))
    return whole if unusual else None
