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

VERSION = 1
"""Incremented with each change of a rule. The manifest of a bundle names it."""

RULES: Mapping[str, str] = {
    "env": "the value of every environment variable, in manifests and in what device plugins add",
    "arguments": "each word of a command or its arguments, unless no secret can hide in it",
    "annotations": "the value of every annotation, except those that chronolet, kubectl and CDI give a meaning",
    "headers": "the value of every header of an HTTP probe or hook, except Accept, Connection, Host and User-Agent",
    "attributes": "every text in a volume whose driver gives it a meaning (csi, flexVolume, iscsi, rbd and others)",
    "named": "a value whose name has password, passwd, pwd, secret, token, credential, apikey, accesskey or the like",
    "refused": "a value in one of these places that the error about a refused manifest quotes",
    "url": "the user, the password and the values of the query in a URL",
    "authorization": "what follows Basic, Bearer, Digest or Token in an Authorization header",
    "keys": "private keys in PEM, JSON Web Tokens, and the keys of AWS, GitHub, GitLab, Google, Slack and Stripe",
    "known": "everything that another rule or a Secret of the node named, wherever else it occurs, also in base64",
    "unreadable": "data of an event that is not a map, and any bytes in a map, which may be compressed",
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
_SHORT_FLAG = 3
_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]{1,100}")


def in_arguments(words: list[str], kept: Kept, *, is_command: bool) -> Iterator[tuple[int, Span]]:
    """Yield the index of each word of a command line that has a secret, and where it is in the word.

    `is_command`: the first word is the program.
    """
    sensitive = named = False
    for index, word in enumerate(words):
        if index == 0 and is_command and _PROGRAM.fullmatch(word):
            continue
        flag = _FLAG.fullmatch(word) if word.startswith("-") else _ASSIGNED.fullmatch(word)
        if flag is None:
            if not named and (sensitive or not is_harmless(word)):
                yield index, Span(0, len(word), "arguments", sensitive)
            sensitive = named = False
            continue
        name, value = flag[1].lstrip("-"), flag[2]
        named, sensitive = kept.covers(name) and value is None, is_sensitive(name) and value is None
        if kept.covers(name):
            continue
        if value is not None and (is_sensitive(name) or not is_harmless(value)):
            yield index, Span(flag.start(2), len(word), "arguments", is_sensitive(name))
        elif value is None and not word.startswith("--") and len(word) > _SHORT_FLAG and not is_harmless(word[2:]):
            yield index, Span(2, len(word), "arguments", False)


# -- texts -------------------------------------------------------------------------------------------------------------
_QUOTES = "\"'`"
_VALUE = r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s&,;\"'`<>)\]}][^\s&,;\"'`<>)\]}]*)"
_WORD = r"(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credential|api[_.-]?key|access[_.-]?key|private[_.-]?key)"
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "keys",
        re.compile(
            r"(?P<value>-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z))", re.DOTALL
        ),
    ),
    ("keys", re.compile(r"(?P<value>\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)")),
    (
        "keys",
        re.compile(
            r"\b(?P<value>(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
            r"|glpat-[A-Za-z0-9_-]{16,}|xox[abeprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|[sr]k_(?:live|test)_[A-Za-z0-9]{10,}"
            r"|AGE-SECRET-KEY-[A-Z0-9]{20,})"
        ),
    ),
    (
        "refused",
        re.compile(
            r"(?:\]\.value|annotations\.[^\s:]{1,320}|(?:args|command)\[[0-9]{1,5}\]|[dD]ata\[[^\s:]{1,320}\]): "
            r"(?!is )(?P<value>'[^'\n]*'|\"[^\"\n]*\"|\S+) "
        ),
    ),
    ("refused", re.compile(r"env\[[0-9]{1,5}\]\.name: '[^'=\n]{0,320}=(?P<value>[^'\n]*)'")),
    ("url", re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://(?P<value>[^\s/@\"'`<>]+)@")),
    ("url", re.compile(r"[?&][A-Za-z0-9_.\[\]%-]{1,60}=(?P<value>[^\s&\"'`#<>)]+)")),
    (
        "authorization",
        re.compile(
            r"authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|digest|token)\s+(?P<value>[^\"'\s,]+)", re.IGNORECASE
        ),
    ),
    ("authorization", re.compile(r"\b(?:Basic|Bearer)\s+(?P<value>[A-Za-z0-9+/=._~-]{16,})")),
    ("named", re.compile(_WORD + r"[A-Za-z0-9_.-]{0,20}[\"']?\s{0,3}[=:]\s{0,3}" + _VALUE, re.IGNORECASE)),
    (
        "named",
        re.compile(
            r"(?:^|[\s\"'`,;&({\[])[A-Za-z0-9_.-]{0,40}\b(?:auth|key|dsn|pass|cookie)[\"']?\s?=\s?" + _VALUE,
            re.IGNORECASE,
        ),
    ),
    ("named", re.compile(r"\"(?:auth|identitytoken|registrytoken)\"\s*:\s*" + _VALUE, re.IGNORECASE)),
    (
        "named",
        re.compile(r"(?:^|\s)--?[A-Za-z0-9_.-]{0,40}" + _WORD + r"[A-Za-z0-9_.-]{0,20}\s+" + _VALUE, re.IGNORECASE),
    ),
)
_HINT = re.compile(
    r"[=:]|--|eyJ|[A-Z]{4}|gh[pousr]_|github_pat_|glpat-|xox|[sr]k_|Bearer|Basic|[Pp]ass|[Ss]ecret|[Tt]oken"
)


def in_text(text: str) -> Iterator[Span]:
    """Yield what looks like a secret in a text of any origin. Spans may overlap."""
    if _HINT.search(text) is None:
        return
    for rule, pattern in _PATTERNS:
        for found in pattern.finditer(text):
            begin, end = found.span("value")
            if end - begin > 1 and text[begin] in _QUOTES and text[end - 1] == text[begin]:
                begin, end = begin + 1, end - 1
            if begin < end and MARK.match(text, begin) is None:
                yield Span(begin, end, rule)
