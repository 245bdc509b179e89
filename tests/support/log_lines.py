"""Lines of an agent's own log, for tests of what it logs during an outage.

Input: lines as written, with their times. Output: how often the most frequent line was logged. The number of sources
that log something depends on the length of the outage, but none of them repeats the same line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def most_repeated(lines: Iterable[str]) -> int:
    """Return how often the most frequent line was logged, apart from its time (the first word); 0 if there are no
    lines.
    """
    counted = Counter(line.partition(" ")[2] for line in lines)
    return max(counted.values(), default=0)
