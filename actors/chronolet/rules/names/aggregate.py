"""Joins errors into one text like Kubernetes. Pure. Source: apimachinery's pkg/util/errors."""

from __future__ import annotations

from collections.abc import Iterable


def aggregate(errors: Iterable[str]) -> str:
    """Join errors: empty for none, a single one unchanged, several distinct ones in brackets."""
    distinct = list(dict.fromkeys(error for error in errors if error))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
