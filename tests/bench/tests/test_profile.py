"""The profile that explains a missed goal adds up the samples of all runs of a part."""

import subprocess
import sys
from pathlib import Path

from chronolet_schemas.envelope import Entry, Position
from tests.bench.kernel.child import REPOSITORY
from tests.bench.pods import profile

BUSY = """
import sys, time
from pathlib import Path
from tests.bench.pods.sampled import Sampler

def burn():
    end = time.monotonic() + 3
    while time.monotonic() < end:
        pass

Sampler(Path(sys.argv[1])).start()
burn()
"""


def test_samples_of_all_runs_are_added_up(tmp_path: Path) -> None:
    path = profile.begin(tmp_path / "made", "b")
    (tmp_path / "made" / "b-1.cpu").write_text("reader;a:run;a:read 600000\npod StartContainer;w:run;d:start 300000\n")
    (tmp_path / "made" / "b-2.cpu").write_text("reader;a:run;a:read 100000\n")
    (tmp_path / "made" / "b-1.wall").write_text("reader;a:run 900000\npod StartContainer;w:run;d:start 800000\n")
    (tmp_path / "made" / "b-2.wall").write_text("pleg Relist;p:run 5000000\n")
    entries = [
        Entry(Position(1000, 1), "pod.Asked@1", "pod/a", "", "pod/0#1", "", b""),
        Entry(Position(1080, 2), "pod.Started@1", "pod/a", "", "pod/0#1", "1000-1", b""),
        Entry(Position(1200, 3), "pod.Started@1", "pod/a", "", "pod/0#1", "1000-1", b""),
    ]
    line = profile.summary(path, entries)
    assert line == f"profile: {path}.txt: CPU 1.0 s: 70 % a:read, 30 % d:start"
    tables = (tmp_path / "made" / "b.txt").read_text().split("\n\n")
    assert [line.split() for line in tables[0].splitlines()[1:]] == [
        ["0.700", "s", "reader"],
        ["0.300", "s", "pod", "StartContainer"],
    ]
    assert "0.800 s  d:start" in tables[3]
    assert "reader" not in tables[3]
    assert "Relist" not in tables[3]
    assert tables[4].splitlines()[1].split() == [
        *("140", "ms", "200", "ms", "2"),
        *("pod.Asked@1", "->", "pod.Started@1"),
    ]
    profile.begin(tmp_path / "made", "b")
    assert not list((tmp_path / "made").glob("b-*"))


def test_a_busy_function_is_found(tmp_path: Path) -> None:
    """The sampler runs in a separate process."""
    subprocess.run([sys.executable, "-c", BUSY, str(tmp_path / "x")], check=True, cwd=REPOSITORY)
    assert "% __main__:burn" in profile.summary(tmp_path / "x")
