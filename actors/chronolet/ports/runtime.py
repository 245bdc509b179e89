"""The container runtime, as pod and pleg need it: sandboxes, containers, images, notices.

Comes in: plain specs. Goes out: plain states, or `Refusal`. Source: the kubelet's CRI (runtime.v1), reduced to what
a Docker Engine of 20.10 and newer can do. Implementations: `adapters.docker_runtime`, `adapters.fake_runtime`; one
contract suite.

Every container carries labels by which it is found again: `io.kubernetes.pod.name|namespace|uid`,
`io.kubernetes.container.name`, `chronolet/node`, `chronolet/attempt`, `chronolet/cause` (the log position
that asked for it), `chronolet/run` (that log), `chronolet/spec-hash`; a container but for sandboxes also
`chronolet/digest` (of all that it was made from).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from chronolet.ports.streams import Attachment, Stream
from chronolet.rules.cgroups import QUOTA_PERIOD_MICROSECONDS, Values
from chronolet.rules.registry_keys import Credential


class Plain(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the port's records."""


class Mount(Plain, frozen=True, kw_only=True):
    """A folder or file of the host seen in a container."""

    source: str
    target: str
    read_only: bool = False
    propagation: Literal["", "rslave", "rshared"] = ""
    """What is mounted later on one side and seen on the other: nothing, what the host mounts, both ways."""
    has_to_be: bool = False
    """Whether the container cannot be made without the source; else a folder is made for it."""


class Device(Plain, frozen=True, kw_only=True):
    """A device file of the host in a container. `permissions` are of r, w and m (mknod)."""

    source: str
    target: str
    permissions: str = "rwm"


class PortMapping(Plain, frozen=True, kw_only=True):
    """A host port that leads to a port of the sandbox. `protocol` in lower case."""

    host_ip: str = ""
    host_port: int
    container_port: int
    protocol: Literal["tcp", "udp", "sctp"] = "tcp"


class SandboxSpec(Plain, frozen=True, kw_only=True):
    """The container that holds a pod's namespaces. On the host's network it has the host's name and no ports."""

    name: str
    labels: Mapping[str, str]
    image: str
    hostname: str
    ports: Sequence[PortMapping] = ()
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    sysctls: Mapping[str, str] = {}
    cgroup_parent: str = ""
    """The cgroup that it begins beneath, empty for wherever the runtime puts it."""
    oom_score_adj: int = 0


class ContainerSpec(Plain, frozen=True, kw_only=True):
    """One container that joins a sandbox. Empty `command` or `args` leave the image's own in force."""

    name: str
    labels: Mapping[str, str]
    sandbox_id: str
    image: str
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    working_dir: str = ""
    mounts: Sequence[Mount] = ()
    devices: Sequence[Device] = ()
    cdi_devices: Sequence[str] = ()
    """Fully qualified names, vendor/class=name; for an engine that knows them."""
    cpu_milli: int = 0
    """Limit in thousandths of a processor; 0 is none."""
    cpu_period_us: int = QUOTA_PERIOD_MICROSECONDS
    memory_bytes: int = 0
    cpu_shares: int = 2
    cgroup_parent: str = ""
    """As the sandbox's."""
    oom_score_adj: int = 0
    """From -1000 (the kernel never kills it for memory) to 1000 (first of all)."""
    pid: str = ""
    """Whose processes it sees: empty its own, `host`, or those of the container with this id."""
    host_ipc: bool = False
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False
    user: str = ""
    """`uid[:gid]`, empty for the image's own."""
    groups: Sequence[int] = ()
    privileged: bool = False
    cap_add: Sequence[str] = ()
    cap_drop: Sequence[str] = ()
    read_only_root: bool = False
    security_options: Sequence[str] = ()
    """As Docker writes them: `no-new-privileges`, `seccomp=<profile or unconfined>`, `apparmor=<name>`, `label=...`."""
    stop_signal: str = ""
    """Empty for the image's own."""
    held: Values = Values()
    """What stands in its cgroup besides, once it runs: no runtime's business, but whoever's who started it."""


State = Literal["created", "running", "exited", "removed", "unknown"]


class ContainerState(Plain, frozen=True, kw_only=True):
    """One container as the runtime has it. Times in milliseconds since the epoch, 0 where unknown.

    `detailed` is False where only a listing told of it: exit code, times and reason are not known then.
    """

    id: str
    name: str
    labels: Mapping[str, str]
    state: State
    image: str = ""
    image_id: str = ""
    created_at: int = 0
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    oom_killed: bool = False
    error: str = ""
    ip: str = ""
    pid: int = 0
    command: Sequence[str] = ()
    """The program that it was made to run, with its arguments: those of its first process once that has begun it."""
    stop_signal: str = "TERM"
    """What its image wants to be stopped with."""
    sandbox_id: str = ""
    """The id of the container whose network it is in."""
    host_network: bool = False
    """Whether it is in the machine's own network; False too where another container's network is joined."""
    detailed: bool = True


class Notice(Plain, frozen=True, kw_only=True):
    """One line of the runtime's event stream, about a container of this node."""

    action: Literal["create", "start", "die", "destroy", "oom"]
    id: str
    labels: Mapping[str, str]
    at: int
    """Milliseconds since the epoch."""
    exit_code: int = 0


class ExecState(Plain, frozen=True, kw_only=True):
    """A command that was to run in a container. `exit_code` is None until it has ended."""

    running: bool
    exit_code: int | None = None


class ExecResult(Plain, frozen=True, kw_only=True):
    """How a command in a container ended. `output` is both streams as they came, cut after 16 KiB."""

    output: bytes
    exit_code: int


class BuiltImage(Plain, frozen=True, kw_only=True):
    """A root file system as a tar, and the Dockerfile instructions to import it with."""

    archive: bytes
    changes: Sequence[str]


class ImageState(Plain, frozen=True, kw_only=True):
    """An image that is there. `digests` are by what names registries know it: `host/path@sha256:...`; `user` is whom it
    is to run as, empty for root.
    """

    id: str
    size_bytes: int
    digests: Sequence[str] = ()
    user: str = ""


class PullStep(Plain, frozen=True, kw_only=True):
    """One word of a pull about one layer (or about the whole, then `layer` is a tag or empty).

    `done` and `total` are bytes of what `status` names, 0 where it has none.
    """

    layer: str = ""
    status: str
    done: int = 0
    total: int = 0


class Engine(Plain, frozen=True, kw_only=True):
    """The runtime's own identity."""

    name: str
    version: str
    api_version: str
    id: str = ""
    """Its own, kept in its data folder: distinguishes two engines behind one address. Empty where it has none."""
    root: str = ""
    cgroup_driver: str = ""
    cgroup_version: str = ""
    knows_cdi: bool = False
    """Whether devices can be named to it as the Container Device Interface does."""
    warnings: Sequence[str] = ()


RefusalKind = Literal["not_found", "conflict", "invalid", "no_space", "unavailable", "denied", "failed", "timeout"]


class Refusal(Exception):  # noqa: N818 - the runtime's answer, expected by every caller
    """The runtime said no. `unavailable` and `timeout` may heal by waiting; the message is the runtime's own line."""

    def __init__(self, kind: RefusalKind, message: str) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind


class Runtime(Protocol):
    """Each call is one call to the runtime, raises `Refusal`, and never waits longer than its own time-out."""

    def engine(self) -> Engine:
        """Who is there; `Refusal(unavailable)` if nobody."""

    def create_sandbox(self, spec: SandboxSpec) -> str:
        """Create, do not start; the id. `conflict` if the name is taken."""

    def create_container(self, spec: ContainerSpec) -> str:
        """Create, do not start; the id. `conflict` if the name is taken, `not_found` if the image is missing."""

    def start(self, container_id: str) -> None:
        """Start a created container. `failed` with the runtime's words if its command cannot be run."""

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        """All that is known of one container, None if there is none."""

    def kill(self, container_id: str, signal: str = "KILL") -> None:
        """Send a signal; nothing happens to a dead or absent container."""

    def wait(self, container_id: str, timeout_seconds: float) -> bool:
        """Wait until it does not run (absent counts); False if it still runs after the time.

        There is no `stop`: who stops a container must be able to change their mind during a grace of an hour.
        """

    def remove(self, container_id: str) -> None:
        """Remove a container, running or not, with its anonymous volumes; nothing happens to an absent one."""

    def remove_dead(self, container_id: str) -> None:
        """Remove a container that does not run, as `remove` does; `conflict` if it does."""

    def forget_endpoint(self, name: str) -> None:
        """Free what the network still holds for a container of this name that is not there; nothing if there is none.

        An engine that was killed, or was overloaded, may keep it; then no container of the name can be started again.
        """

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        """All containers, dead ones too, that carry these labels; `detailed` is False in all of them."""

    def follow(
        self, labels: Mapping[str, str], since: int | None, opened: Callable[[Stream], None]
    ) -> Iterator[Notice]:
        """Notices about containers with these labels, as they happen; from `since` (milliseconds) on if given.

        `opened` is handed the stream once it stands, so that another thread can close it. Ends, or raises
        `Refusal(unavailable)`, when the stream breaks.
        """

    def written_bytes(self, container_id: str) -> int:
        """How much a container has written beside its image and its mounts; 0 of one that is not there."""

    def image(self, reference: str) -> ImageState | None:
        """The image, if it is there."""

    def pull(
        self,
        reference: str,
        progress: Callable[[PullStep], None],
        *,
        credential: Credential | None = None,
        opened: Callable[[Stream], None] = lambda _: None,
        silence_seconds: float = 120.0,
    ) -> ImageState:
        """Fetch an image. `opened` is handed what another thread may close to end the pull before its time.

        Without a word for so long it is given up. `denied` if the registry wants other credentials, `unavailable` if
        there is none.
        """

    def import_image(self, reference: str, archive: bytes, changes: Sequence[str]) -> str:
        """Make a local image of a root file system (a tar); its id."""

    def logs(
        self, container_id: str, *, follow: bool, tail: int | None, since: int | None, timestamps: bool
    ) -> Iterator[tuple[str, bytes]]:
        """Pieces of output as (`stdout` or `stderr`, bytes), oldest first."""

    def log_path(self, container_id: str) -> str:
        """The file on the runtime's machine with a container's output, from its start on."""

    def create_exec(
        self,
        container_id: str,
        command: Sequence[str],
        *,
        tty: bool = False,
        stdin: bool = False,
        env: Mapping[str, str] = {},
    ) -> str:
        """Prepare a command in a running container; the exec's id. `conflict` if the container does not run."""

    def inspect_exec(self, exec_id: str) -> ExecState | None:
        """How far it is, None if there is no such exec: the runtime forgets them when it or the container ends."""

    def find_execs(self, container_id: str, mark: tuple[str, str]) -> Sequence[str]:
        """The commands that run in a container and were begun with this variable in their environment, whoever began
        them; none where the container does not run.
        """

    def exec_seconds(self, exec_id: str) -> float | None:
        """How long a command and its children have used a processor or waited for one; None if it does not run."""

    def run_exec(
        self,
        exec_id: str,
        timeout_seconds: float = 0.0,
        *,
        cancelled: threading.Event | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> ExecResult:
        """Start a prepared command and wait for its end; 0 seconds wait for ever. `meanwhile` is called now and then.

        It is started once: `conflict` after that, `not_found` where the runtime has forgotten it. `timeout` when the
        time is up or `cancelled` is set: the command goes on. If its container ends, it ends with 137 or `not_found`.
        One that does not exist ends with 126 or 127 and the runtime's words as its output. One that could not be begun
        for another reason, such as a want of descriptors or a container that is about to end, is refused: `failed`.
        """

    def kill_exec(self, exec_id: str) -> None:
        """Kill a command, its group and its children; nothing happens to one that does not run."""

    def attach_exec(self, exec_id: str, *, tty: bool = False) -> Attachment:
        """Start a prepared command and be connected to it. `conflict` if it was started before."""

    def resize_exec(self, exec_id: str, rows: int, columns: int) -> None:
        """Tell a command the size of its terminal; `failed` or `not_found` while it does not run yet."""

    def close(self) -> None:
        """Give back connections."""
