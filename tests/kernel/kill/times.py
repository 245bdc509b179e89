"""The number of attacks."""

from collections.abc import Callable

Times = Callable[[int, int], range]
"""`times(60, 500)` is a range of 60, or of 500 with --long."""
