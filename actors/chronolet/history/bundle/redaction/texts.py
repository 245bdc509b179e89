"""The rules that find secrets in texts of any origin: output of probes, errors of the engine, KubeEvents, names.

Input: a text. Output: the parts of it that look like secrets. Pure. Next: `redactor`. `rules` names all rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronolet.history.bundle.redaction.rules import MARK, Span

_QUOTES = "\"'`"
_VALUE = (
    r"(?P<value>"
    r"(?P<slashes>\\{1,15})(?P<quote>[\"'])(?:(?!(?<!\\)(?P=slashes)(?P=quote))[^\n])*(?:(?P=slashes)(?P=quote))?"
    r"|\"(?:[^\"\\\n]|\\.)*(?:\"|$|(?=\n))"
    r"|'(?:[^'\\\n]|\\.|'')*(?:'|$|(?=\n))"
    r"|`[^`\n]*`?"
    r"|[^\s\"'`\\]\S*)"
)
"""A value in quotes, which may be escaped, as may be those within; or everything up to the next space."""
_QUOTED = r"(?P<value>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|\S+)"
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
            r"(?!is )" + _QUOTED + " "
        ),
    ),
    ("refused", re.compile(r"env\[[0-9]{1,5}\]\.name: '[^'=\n]{0,320}=(?P<value>(?:[^'\\\n]|\\.)*)")),
    ("refused", re.compile(r"env\[[0-9]{1,5}\]\.name: \"[^\"=\n]{0,320}=(?P<value>(?:[^\"\\\n]|\\.)*)")),
    ("url", re.compile(r"[?&;][A-Za-z0-9_.\[\]%-]{1,60}=(?P<value>[^\s&\"'`#<>)]+)")),
    (
        "url",
        re.compile(
            r"(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks"
            r"|webhook\.office\.com|api\.telegram\.org)/(?P<value>[^\s\"'`<>]+)"
        ),
    ),
    (
        "authorization",
        re.compile(
            r"authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|digest|token)\s+(?P<value>[^\"'\s,]+)", re.IGNORECASE
        ),
    ),
    ("authorization", re.compile(r"\b(?:Basic|Bearer)\s+(?P<value>[A-Za-z0-9+/=._~-]{16,})")),
    ("authorization", re.compile(r"\bcookie[\"']?\s{0,3}:\s{0,3}[\"']?(?P<value>[^\r\n\"']+)", re.IGNORECASE)),
    ("named", re.compile(_WORD + r"[A-Za-z0-9_.-]{0,20}(?:\\{0,15}[\"'])?\s{0,3}[=:]\s{0,3}" + _VALUE, re.IGNORECASE)),
    (
        "named",
        re.compile(
            r"(?:^|[\s\"'`,;&({\[])[A-Za-z0-9_.-]{0,40}\b(?:auth|key|dsn|pass|pw|cookie)(?:\\{0,15}[\"'])?\s?=\s?"
            + _VALUE,
            re.IGNORECASE,
        ),
    ),
    (
        "named",
        re.compile(r"\"(?:auth|identitytoken|registrytoken|pw|pass)\\{0,15}\"\s*:\s*" + _VALUE, re.IGNORECASE),
    ),
    (
        "named",
        re.compile(r"(?:^|\s)--?[A-Za-z0-9_.-]{0,40}" + _WORD + r"[A-Za-z0-9_.-]{0,20}\s+" + _VALUE, re.IGNORECASE),
    ),
    (
        "named",
        re.compile(
            r"\b(?:mysql|mariadb|redis-cli|mongo|sshpass)[^\n|;&]{0,200}?\s-[pa]\s?(?P<value>[^\s-]\S*)", re.IGNORECASE
        ),
    ),
)
_IN_SENTENCE = re.compile(
    _WORD + r"\s{1,3}(?:is|was)\s{1,3}"
    r"(?!(?:not|no|un\w+|in\w+|required|missing|wrong|empty|expired|too|set|the|a|an|rejected|used|needed|only)\b)"
    + _VALUE,
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[A-Z]?[a-z]+[.,!]?")
_USERINFO = re.compile(
    r"(?<![A-Za-z0-9_.%+-])[A-Za-z0-9_.%+-]{0,64}:(?!//)(?P<value>[^\s\"'`<>]{1,300})@(?!sha[0-9]{1,3}:)(?=[A-Za-z0-9\[])"
)
_CHUNK = re.compile(r"\S*://\S*")
_DIGEST = re.compile(r"@(?!sha[0-9]{1,3}:)")
_HINT = re.compile(
    r"[=:]|--|eyJ|[A-Z]{4}|gh[pousr]_|github_pat_|glpat-|xox|[sr]k_|Bearer|Basic|[Pp]ass|[Ss]ecret|[Tt]oken"
    r"|mysql|mariadb|redis-cli|mongo|hooks\.|webhook|telegram"
)


def in_text(text: str) -> Iterator[Span]:
    """Yield what looks like a secret in a text of any origin. Spans may overlap."""
    if _HINT.search(text) is None:
        return
    if "@" in text:
        yield from _userinfo(text)
    for rule, pattern in _PATTERNS:
        for found in pattern.finditer(text):
            begin, end = _unquoted(text, *found.span("value"))
            if begin < end and MARK.fullmatch(text[begin:end].rstrip(".,;:)]}")) is None:
                yield Span(begin, end, rule)
    for found in _IN_SENTENCE.finditer(text):
        begin, end = _unquoted(text, *found.span("value"))
        if begin < end and MARK.match(text, begin) is None:
            yield Span(begin, end, "named", _PLAIN.fullmatch(text[begin:end]) is None)


def _unquoted(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return the range without quotes, and without the backslashes before them."""
    value = text[begin:end]
    opened = value.lstrip("\\")
    if not opened or opened[0] not in _QUOTES:
        return begin, end
    slashes = value[: len(value) - len(opened)]
    closed = slashes + opened[0]
    inner = len(closed)
    last = end - inner if len(value) >= 2 * inner and value.endswith(closed) else end
    return begin + inner, last


def _userinfo(text: str) -> Iterator[Span]:
    """Yield the user and the password in URLs, up to the last `@`, as both may have one; and passwords before hosts."""
    for chunk in _CHUNK.finditer(text):
        ats = [found.start() for found in _DIGEST.finditer(chunk[0])]
        begin = chunk[0].index("://") + len("://")
        if ats and ats[-1] > begin:
            value = chunk[0][begin : ats[-1]]
            if MARK.fullmatch(value) is None:
                yield Span(chunk.start() + begin, chunk.start() + ats[-1], "url")
    for found in _USERINFO.finditer(text):
        if MARK.fullmatch(found["value"]) is None:
            yield Span(*found.span("value"), "userinfo")
