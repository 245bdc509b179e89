"""Serializes plain data.

Input: maps, lists, strings, numbers. Output: JSON or YAML.
"""

from __future__ import annotations


def dump(value: object, form: str) -> str:
    """Format the value as `json` or `yaml`, without a trailing newline."""
    if form == "json":
        import json  # noqa: PLC0415 - most commands print tables

        return json.dumps(value, indent=4)
    import yaml  # noqa: PLC0415 - slow to load

    return str(yaml.safe_dump(value, sort_keys=False, default_flow_style=False)).rstrip()
