"""The machine's properties, read from the kernel.

Input: the state folder. Output: addresses, capacities, security features. Next: the users of `ports.machine.host.Host`.
Corresponds to apimachinery's pkg/util/net/interface.go (ChooseHostInterface), cadvisor's machine info.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

_CAPABILITIES = (  # in the order of their numbers
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE "
    "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
)
_SOMEWHERE_ELSE = ("192.0.2.1", 9)  # reserved for documentation: only the route is looked up, nothing is sent


_LOOPBACK = "127.0.0.1"
_SIOCGIFADDR = 0x8915
_IFREQ = struct.Struct("256s")
_ADDRESS = slice(20, 24)  # the address within struct sockaddr_in, after the interface's name


class LinuxHost:
    """Implements `ports.machine.host.Host`. `root` is the state folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def address(self) -> str:
        """Return the address from which this machine reaches others; without a route, any other address of its own, or
        else the loopback address.
        """
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(_SOMEWHERE_ELSE)
                return str(probe.getsockname()[0])
            except OSError:
                return _address_by_name() or _address_by_interface() or _LOOPBACK

    def cpu_milli(self) -> int:
        return (os.cpu_count() or 1) * 1000

    def memory_bytes(self) -> int:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    def storage_bytes(self) -> int:
        found = os.statvfs(self._root)
        return found.f_blocks * found.f_frsize

    def missing_capabilities(self) -> Sequence[str]:
        last = int(self.file("/proc/sys/kernel/cap_last_cap") or 0)
        lines = self.file("/proc/self/status").splitlines()
        bounds = next((int(line.split()[1], 16) for line in lines if line.startswith("CapBnd:")), 0)
        return [name for bit, name in enumerate(_CAPABILITIES.split()[: last + 1]) if not bounds >> bit & 1]

    def enforces_app_armor(self) -> bool:
        return self.file("/sys/module/apparmor/parameters/enabled").startswith("Y")

    def seccomp_profile(self, name: str) -> str:
        read = (self._root / "seccomp" / name).read_bytes()
        try:
            return msgspec.json.encode(msgspec.json.decode(read)).decode()
        except msgspec.DecodeError as error:
            raise ValueError(f"{self._root / 'seccomp' / name}: {error}") from error

    def file(self, path: str) -> str:
        try:
            return Path(path).read_text(errors="replace")
        except OSError:
            return ""


def _address_by_name() -> str:
    """Return the address to which this machine's host name resolves; empty if it belongs to another machine or is a
    loopback address. For machines without a default route.
    """
    try:
        found = socket.gethostbyname(socket.gethostname())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.bind((found, 0))
    except OSError:
        return ""
    return "" if found.startswith("127.") else found


def _address_by_interface() -> str:
    """Return the first IPv4 address that is not a loopback address; empty if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # the interface has no address
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, _IFREQ.pack(name.encode()))
                found = socket.inet_ntoa(answer[_ADDRESS])
                if not found.startswith("127."):
                    return found
    return ""
