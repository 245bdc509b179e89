"""Takes secrets out of events and states, whatever release wrote them.

Input: the plain data of an event or a state, and what is already known to be secret. Output: the same data with each
secret replaced by `<redacted-N>`, in which equal secrets have the same number: a reader sees that a value changed, and
where it is used again. Pure. Next: `format`.

The rules go by the names of fields, which events, states and manifests share, so they also hold for types that this
release does not know. A `Redactor` is used twice: first without a search, to learn all values, then to replace them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from chronolet.history.bundle.redaction import fields, rules, texts
from chronolet.history.bundle.redaction.rules import NOTHING_KEPT, Kept, Span
from chronolet_schemas import codec
from chronolet_schemas.envelope import Entry

Search = Callable[[str, bool], Iterable[tuple[int, int, str]]]
"""Finds known secrets in a text: where they begin and end, and their marks. The second argument: whether the text is
for people.
"""
_FIELD = re.compile(r"[A-Za-z]+(?:_[a-z]+)*")


class Values:
    """The secrets found so far, numbered in the order in which they were found, and the names."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.sure: set[str] = set()
        """Those whose name or form says that they are secrets."""
        self.names: set[str] = set()

    def mark(self, secret: str, *, sure: bool) -> str:
        """Return the text that replaces a secret."""
        number = self._numbers.setdefault(secret, len(self._numbers) + 1)
        if sure:
            self.sure.add(secret)
        return f"<redacted-{number}>"

    def add_names(self, entry: Entry) -> None:
        """Add the names by which an entry calls its entity and its subject."""
        self.names.update((entry.entity, entry.subject))

    def __iter__(self) -> Iterator[str]:
        """Iterate over the secrets."""
        return iter(tuple(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)


class Redactor:
    """Replaces secrets. `kept`: names whose values are exempt. `search`: replaces what `values` already has."""

    def __init__(self, values: Values, kept: Kept = NOTHING_KEPT, search: Search | None = None) -> None:
        self._values = values
        self._kept = kept
        self._search = search
        self._texts: dict[tuple[str, bool], str] = {}

    def data(self, data: bytes) -> bytes:
        """Return an event's data, a msgpack map, without secrets: the same bytes if there are none, as far as they are
        encoded as chronolet does.
        """
        if not data:
            return data
        try:
            plain = msgspec.msgpack.decode(data)
            if isinstance(plain, dict):
                # Always encoded anew: of fields with one name, only the last is decoded, but `data` has all values.
                return msgspec.msgpack.encode(self.plain(plain))
        except (msgspec.DecodeError, ValueError, RecursionError):
            pass  # as for data that is no map
        return msgspec.msgpack.encode({"redacted": f"{len(data)} bytes that are not the data of an event"})

    def entry(self, entry: Entry) -> Entry:
        """Return the entry with the names in it as they are in its data: without what is surely secret. Any program can
        write to the log, so this includes those that chronolet chooses; types that it knows stay.
        """
        kind, slash, key = entry.entity.partition("/")
        actor, mark, epoch = entry.actor.partition("#")
        return entry._replace(
            type=entry.type if codec.is_known(entry.type) else self.name(entry.type),
            entity=f"{self.name(kind)}{slash}{self.name(key)}",
            subject=self.name(entry.subject),
            actor=f"{self.name(actor)}{mark}{self.name(epoch)}",
            cause=self.name(entry.cause),
        )

    def name(self, name: str) -> str:
        """Return a name without what is surely secret."""
        return self._text(name, "name")

    def states(self, states: bytes) -> bytes:
        """Return the states of a kind, encoded as for a snapshot, without secrets. Raises msgspec.DecodeError."""
        plain = msgspec.msgpack.decode(states, type=dict[str, Any])
        return msgspec.msgpack.encode({self.name(key): self.plain(image) for key, image in plain.items()})

    def results(self, results: bytes) -> bytes:
        """Return raw probe results, as encoded for a bundle, without secrets. Raises msgspec.DecodeError."""
        return msgspec.msgpack.encode(self.plain(msgspec.msgpack.decode(results)))

    def plain(self, value: Any, key: str = "") -> Any:
        """Return plain data without secrets. `key` is the name of the field that has it."""
        if isinstance(value, str):
            if key in fields.NAMES:
                self._values.names.add(value)
            return self._text(value, key)
        if isinstance(value, dict):
            return {self._key(name): self._field(name, held) for name, held in value.items()}
        if isinstance(value, list):
            return self._list(value, key)
        if isinstance(value, bytes | msgspec.msgpack.Ext):
            return rules.bytes_left_out(value)
        return value

    def _key(self, key: Any) -> Any:
        """Return a key of a map without what is surely secret. One that looks like the name of a field must be equal
        to a secret: part of it is none.
        """
        if not isinstance(key, str):
            return self.plain(key) if isinstance(key, bytes | msgspec.msgpack.Ext) else key
        if _FIELD.fullmatch(key) is None:
            return self.name(key)
        found = self.name(key)
        return found if rules.MARK.fullmatch(found) else key

    def _field(self, name: Any, value: Any) -> Any:
        """Redact the value of a field by the rule for its name."""
        if not isinstance(name, str):
            return self.plain(value)
        if isinstance(value, dict) and name in fields.MAPS:
            return self._map(name, value)
        if isinstance(value, dict) and name in fields.HTTP:
            return self._http(value)
        if name not in fields.NAMES and name not in fields.ABOUT_SECRETS and rules.is_sensitive(name):
            return self._sensitive(name, value)
        return self.plain(value, name)

    def _sensitive(self, name: str, value: Any) -> Any:
        """Redact every text in the value of a field whose name says that it is secret."""
        if self._kept.covers(name):
            return value
        if isinstance(value, dict):
            return {self._key(key): self._sensitive(str(key), held) for key, held in value.items()}
        if isinstance(value, list):
            return [self._sensitive(name, item) for item in value]
        return self._exempt(name, value, sure=True, chosen=False)

    def _map(self, name: str, value: Mapping[Any, Any]) -> Any:
        """Redact a map whose keys are names that users or drivers chose."""
        if name in fields.DRIVERS:
            return self._attributes(value)
        if name in fields.ENV_MAPS:
            return {self._key(key): self._exempt(str(key), held) for key, held in value.items()}
        if name in fields.ANNOTATIONS:
            return {self._key(key): self._annotation(str(key), held) for key, held in value.items()}
        return {self._key(key): self.plain(held) for key, held in value.items()}

    def _http(self, value: Mapping[Any, Any]) -> Any:
        """Redact an HTTP request of a probe or hook: parts of its path may be tokens."""
        path = value.get("path")
        plain = {self._key(name): self._field(name, held) for name, held in value.items()}
        if isinstance(path, str) and not self._kept.covers("path"):
            plain["path"] = self._path(path)
        return plain

    def _path(self, path: str) -> str:
        path, mark, query = path.partition("?")
        parts = [
            part if rules.is_familiar(part) else self._marked(part, sure=False) for part in re.split(r"([/;=])", path)
        ]
        if mark:
            parts += [mark, self._marked(query, sure=False)]
        return self._text("".join(parts), "path")

    def _list(self, value: Sequence[Any], key: str) -> list[Any]:
        if key in fields.ARGUMENTS and value and all(isinstance(word, str) for word in value):
            return list(value) if self._kept.covers(key) else self._arguments(list(value), is_command=key == "command")
        if key == fields.ENV:
            return [self._named_value(item, ()) for item in value]
        if key == fields.SYSCTLS:
            return [self._named_value(item, None) for item in value]
        if key in fields.HEADERS:
            return [self._named_value(item, rules.KEPT_HEADERS) for item in value]
        return [self.plain(item, key) for item in value]

    def _named_value(self, item: Any, exempt: Collection[str] | None) -> Any:
        """Redact a map with a name and a value, such as an environment variable or a header. `exempt`: the names whose
        values stay if they are plain words; None: all names, if nothing can hide in their values.
        """
        if not isinstance(item, dict):
            return self.plain(item)
        name, value = str(item.get("name", "")), item.get("value")
        rest = {key: self.plain(held, str(key)) for key, held in item.items() if key != "value"}
        if "value" not in item:
            return rest
        if isinstance(value, str):
            is_exempt = rules.is_harmless(value) if exempt is None else _is_plain(name, value, exempt)
        else:
            is_exempt = not rules.is_sensitive(name)
        held = self.plain(value) if is_exempt else self._exempt(name, value)
        return {key: held if key == "value" else rest[key] for key in item}

    def _exempt(self, name: str, value: Any, *, sure: bool = False, chosen: bool = True) -> Any:
        """Redact a whole value unless its name is exempt. `chosen`: a user chose it, so it may be a number; a number in
        another place has a meaning in an event.
        """
        if self._kept.covers(name):
            return value
        sure = sure or rules.is_sensitive(name)
        if sure and chosen and isinstance(value, int | float) and not isinstance(value, bool):
            return self._marked(str(value), sure=True)
        if not isinstance(value, str) or _is_reference(value):
            return self.plain(value)
        return self._marked(value, sure=sure)

    def _annotation(self, name: str, value: Any) -> Any:
        if rules.KEPT_ANNOTATIONS.covers(name):
            return self.plain(value)
        return self._exempt(name, value)

    def _attributes(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                self._key(name): self.plain(held)
                if name in fields.KEPT_IN_DRIVERS or self._kept.covers(name)
                else self._attributes(held)
                for name, held in value.items()
            }
        if isinstance(value, list):
            return [self._attributes(item) for item in value]
        return self._marked(value, sure=False) if isinstance(value, str) and value else value

    def _arguments(self, words: list[str], *, is_command: bool) -> list[str]:
        found = dict(rules.in_arguments(words, self._kept, is_command=is_command))
        return [
            self._without(word, [found[index]], free=True) if index in found else self._text(word, "")
            for index, word in enumerate(words)
        ]

    def _text(self, text: str, key: str) -> str:
        free = key in fields.FREE_TEXTS or " " in text or "\n" in text
        known = self._texts.get((text, free))
        if known is None:
            known = self._without(text, texts.in_text(text), free=free)
            if len(self._texts) < _MOST_REMEMBERED:
                self._texts[text, free] = known
        return known

    def _without(self, text: str, spans: Iterable[Span], *, free: bool) -> str:
        """Replace the spans and known secrets; where they overlap, all of them by the mark of the first."""
        known = self._search(text, free) if self._search is not None else ()
        pieces: list[str] = []
        at = 0
        for begin, end, found in sorted([*_ranges(spans), *known], key=_order):
            if begin >= at:
                mark = found if isinstance(found, str) else self._marked(text[begin:end], sure=found)
                pieces += [text[at:begin], mark]
            at = max(at, end)
        return "".join([*pieces, text[at:]]) if pieces else text

    def _marked(self, secret: str, *, sure: bool) -> str:
        if not secret or rules.MARK.fullmatch(secret):
            return secret
        return self._values.mark(secret, sure=sure)


_MOST_REMEMBERED = 200_000


def _ranges(spans: Iterable[Span]) -> Iterator[tuple[int, int, str | bool]]:
    return ((span.begin, span.end, span.sure) for span in spans)


def _order(span: tuple[int, int, str | bool]) -> tuple[int, int]:
    return span[0], -span[1]


def _is_plain(name: str, value: str, exempt: Collection[str]) -> bool:
    return name.lower() in exempt and rules.is_familiar(value)


def _is_reference(value: str) -> bool:
    return not value or (value.startswith("$(") and value.endswith(")") and value[2:-1].isidentifier())
