"""Several errors as one text, as Kubernetes writes them. Pure. Source: apimachinery's pkg/util/errors."""

from __future__ import annotations

from collections.abc import Iterable


def aggregate(errors: Iterable[str]) -> str:
    """Nothing of none; one as it is; of several each once, in brackets."""
    distinct = list(dict.fromkeys(error for error in errors if error))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""
