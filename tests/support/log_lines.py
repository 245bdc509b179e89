"""Lines of an agent's own log, for tests of what it says while something is away.

Input: lines as they were written, with their times. Output: how often the same thing was said. How many sources
have something to say meanwhile depends on how long it lasts; none of them says the same again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def times_said(lines: Iterable[str]) -> int:
    """How often the line was said that was said most often; 0 without lines."""
    counted = Counter(line.partition(" ")[2] for line in lines)
    return max(counted.values(), default=0)
