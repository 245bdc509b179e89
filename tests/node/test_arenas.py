"""The agent's threads share two malloc arenas."""

import subprocess
import sys

import pytest

THREADS = """
import ctypes, sys, threading
from chronolet.node.main import limit_arenas
few = sys.argv[1] == "few"
if few:
    limit_arenas()
together = threading.Barrier(12)
def work():
    held = [bytes(4000) for _ in range(50)]
    together.wait()
threads = [threading.Thread(target=work) for _ in range(12)]
for one in threads:
    one.start()
for one in threads:
    one.join()
ctypes.CDLL(None).malloc_stats()
"""


def arenas(how: str) -> int:
    """Return the number of malloc arenas in a process with a dozen threads that hold memory at the same time."""
    done = subprocess.run([sys.executable, "-c", THREADS, how], check=True, capture_output=True, text=True)
    return done.stderr.count("Arena ")


def test_a_dozen_threads_share_two() -> None:
    if not arenas("unlimited") > 2:
        pytest.skip("this C library has no arenas for threads")
    assert arenas("few") == 2
