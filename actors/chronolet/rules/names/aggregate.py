"""Joins errors into one message, as Kubernetes does. Pure. Source: apimachinery's pkg/util/errors."""

from __future__ import annotations

from collections.abc import Iterable


def aggregate(errors: Iterable[str]) -> str:
    """Join errors: without errors, the message is empty; a single error is not changed; several are put in brackets.
    Duplicates are removed.
    """
    distinct = list(dict.fromkeys(error for error in errors if error))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
