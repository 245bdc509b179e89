"""A process's memory by kind and by package adds up to the whole."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.memory import TRACED, mappings, packages
from tests.bench.memory.traced import Snapshot

SMAPS = """
55d0a0000000-55d0a0001000 r--p 00000000 fe:00 1                          /usr/bin/python3.11
Rss:                   4 kB
Pss:                   2 kB
Pss_Dirty:             9 kB
55d0a0001000-55d0a0002000 r-xp 00001000 fe:00 1                          /usr/bin/python3.11
Rss:                   8 kB
Pss:                   4 kB
55d0a1000000-55d0a2000000 rw-p 00000000 00:00 0                          [heap]
Rss:                1024 kB
Pss:                1024 kB
7f0000000000-7f0001000000 rw-p 00000000 00:00 0
Rss:                2048 kB
Pss:                2048 kB
7f0002000000-7f0002001000 r--p 00000000 fe:00 2                          /usr/lib/locale/a name with spaces
Rss:                  16 kB
Pss:                   1 kB
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
Rss:                  32 kB
Pss:                  32 kB
"""


def test_each_mapping_has_one_kind() -> None:
    found = mappings.parsed(SMAPS.strip().splitlines())
    assert [one.path for one in found][4] == "/usr/lib/locale/a name with spaces"
    kinds = {kind: (held.rss_mib * 1024, held.pss_mib * 1024) for kind, held in mappings.by_kind(found).items()}
    assert kinds == {
        "heap": (1024, 1024),
        "anonymous memory": (2080, 2080),
        "libraries": (12, 6),
        "files": (16, 1),
    }
    assert mappings.resident_mib(found) * 1024 == 3132
    assert mappings.largest(found) == "a name with spaces 0.0, python3.11 0.0"


def test_the_parts_of_a_running_process_add_up_to_the_whole() -> None:
    with subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = mappings.of(process.pid)
        process.kill()
    parts = mappings.by_kind(found)
    assert sum(held.rss_mib for held in parts.values()) == pytest.approx(mappings.resident_mib(found))
    assert all(parts[kind].rss_mib > 0 for kind in ("heap", "anonymous memory", "libraries"))


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("/x/actors/chronolet/pod/decider.py", "chronolet.pod"),
        ("/x/actors/chronolet/__init__.py", "chronolet"),
        ("/x/actors/chronolet_sample_plugin/main.py", "chronolet_sample_plugin"),
        ("/x/schemas/chronolet_schemas/pod.py", "chronolet_schemas"),
        ("/v/lib/python3.11/site-packages/grpc/_channel.py", "grpc"),
        ("/v/lib/python3.11/site-packages/typing_extensions.py", "typing_extensions"),
        ("/usr/lib/python3.11/json/decoder.py", packages.STANDARD),
        ("<frozen os>", packages.STANDARD),
        ("<frozen importlib._bootstrap_external>", packages.IMPORTER),
        ("<string>", packages.GENERATED),
    ],
)
def test_a_file_belongs_to_one_package(name: str, package: str) -> None:
    assert packages.package(name) == package


def test_memory_of_the_importer_belongs_to_the_loaded_files() -> None:
    mib = 1 << 20
    found = Snapshot(
        allocated={"<frozen importlib._bootstrap>": 3 * mib, "/x/actors/chronolet/pod/state.py": mib},
        code={"/x/actors/chronolet/pod/state.py": mib, "/v/site-packages/grpc/a.py": mib},
    )
    assert packages.held(found) == {"chronolet.pod": 2, "grpc": 1, packages.IMPORTER: 1}


def test_freed_code_is_not_counted() -> None:
    mib = 1 << 20
    found = Snapshot(allocated={"<frozen importlib._bootstrap>": mib}, code={"/v/site-packages/grpc/a.py": 4 * mib})
    assert packages.held(found) == {"grpc": 1, packages.IMPORTER: 0}


def test_a_traced_program_reports_the_memory_of_its_code(tmp_path: Path) -> None:
    """The tracing thread runs in a separate process."""
    program = (
        "import sys, tracemalloc; from pathlib import Path; import traced;"
        " tracemalloc.start(); traced.SnapshotThread(Path(sys.argv[1]), traced.measured()).start();"
        " import chronolet.pod.decider; held = [bytes(1) * 5_000_000]; print(flush=True); input()"
    )
    path = tmp_path / "x"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], cwd=TRACED.parent, stdin=-1, stdout=-1
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = packages.held(packages.snapshot(path))
        process.kill()
    assert found[packages.GENERATED] > 4
    assert found["chronolet.pod"] > 0
    assert found["chronolet_schemas"] > 0
