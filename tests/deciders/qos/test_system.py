"""The identity of the machine and the runtime."""

from __future__ import annotations

from typing import Any

from chronolet.ports.runtime.runtime import Engine
from chronolet.qos.system import architecture, system
from chronolet_schemas.qos import System


class Machine:
    """A fake host that has only the given files."""

    def __init__(self, **files: str) -> None:
        self.files = files

    def file(self, path: str) -> str:
        return self.files.get(path.rpartition("/")[2].replace("-", "_"), "")

    def address(self) -> str:
        return "192.0.2.7"

    def storage_bytes(self) -> int:
        return 1 << 40


def system_of(**files: str) -> System:
    host: Any = Machine(**files)
    engine = Engine(name="Docker", version="26.1.5", api_version="1.45")
    return system(host, engine, name="n", machine="x86_64", version="0.1")


def test_the_machines_identity_is_read() -> None:
    found = system_of(machine_id="abc\n", osrelease="6.1.0\n", os_release='ID=debian\nPRETTY_NAME="Debian 12"\n')
    assert (found.machine_id, found.kernel_version, found.os_image) == ("abc", "6.1.0", "Debian 12")
    assert (found.architecture, found.operating_system, found.hostname) == ("amd64", "linux", "n")
    assert (found.container_runtime_version, found.agent_version) == ("docker://26.1.5", "0.1")
    assert (found.internal_ip, found.storage_bytes) == ("192.0.2.7", 1 << 40)


def test_missing_values_are_empty() -> None:
    found = system_of()
    assert (found.machine_id, found.os_image, found.system_uuid) == ("", "", "")
    assert architecture("riscv64") == "riscv64"
