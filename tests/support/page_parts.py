"""Reads the data of a page, independently of the page's own scripts.

Input: the text of a page. Output: its parts, as plain values, by name.
"""

import base64
import json
import re
import struct
import zlib
from typing import Any

_PART = re.compile(r'<script type="application/octet-stream" id="part-([^"]+)">([^<]*)</script>')
_FORMATS = {"begin": "I", "look": "B", "start": "I", "rank": "d", "severity": "B", "table": "B"}
_ENTRY = {"milliseconds": "d", "number": "d", "behind": "d", "cause": "d"}


def parts(html: str) -> dict[str, Any]:
    """Return every part; columns as tuples, texts as lists of lines."""
    return {name: _value(name, zlib.decompress(base64.b64decode(data))) for name, data in _PART.findall(html)}


def _value(name: str, data: bytes) -> Any:
    table, _, field = name.partition(".")
    if table == "text":
        return data.decode().split("\n")
    if name == "summary" or field == "objects" or field.endswith(".words"):
        return json.loads(data)
    code = (_ENTRY if table == "entry" else {}).get(field) or _FORMATS.get(field, "I")
    return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def rows(found: dict[str, Any], table: str, entries: int) -> dict[str, list[Any]]:
    """Return the cells of the objects of a table that exist after this many entries, by name."""
    names, start, begin = (found[f"{table}.{field}"] for field in ("objects", "start", "begin"))
    width = len(next(one["head"] for one in found["summary"]["tables"] if one["name"] == table))
    shown = {}
    for number, name in enumerate(names):
        versions = [one for one in range(start[number], start[number + 1]) if begin[one] <= entries]
        if versions and found[f"{table}.look"][versions[-1]]:
            row = versions[-1]
            shown[name] = [found[f"{table}.{at}.words"][found[f"{table}.{at}"][row]] for at in range(width)]
    return shown
