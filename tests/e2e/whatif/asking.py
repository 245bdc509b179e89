"""Asks what-if questions, and compares the answers with what a node did that had the change.

Input: a node. Output: the decisions that an answer calls exact; those of a live run in the same words.
"""

from __future__ import annotations

import json
from typing import Any

from chronolet.node.whatif.result import happening
from tests.e2e.node import Node


def answer(node: Node, *words: str) -> dict[str, Any]:
    """Return the answer of `replay` with these options."""
    result = node.chronolet("replay", *words, "-o", "json")
    assert result.status == 0, result
    found: dict[str, Any] = json.loads(result.out)
    return found


def with_change(found: dict[str, Any], subject: str) -> list[str]:
    """Return what the answer says exactly of a subject with the change, and check that all is an estimate after it."""
    certainties = [row["certainty"] for row in found["rows"]]
    assert certainties == sorted(certainties, key=("exact", "estimate").index)
    mine = [row for row in found["rows"] if row["subject"] == subject and row["certainty"] == "exact"]
    return [row["changed"] for row in mine if row["changed"] is not None]


def lived(node: Node, subject: str, since: int = 0) -> list[str]:
    """Return what happened to a subject, from the entry with this number (counted from 0) on."""
    found = [happening(line.event) for line in node.journal.lines[since:]]
    return [one.text for one in found if one is not None and one.subject == subject]
