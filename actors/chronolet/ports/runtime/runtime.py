"""The port to the container runtime, for pod and pleg: sandboxes, containers, images, notices.

Input: plain specs. Output: plain states, or `Refusal`. Source: the kubelet's CRI (runtime.v1), reduced to what Docker
Engine 20.10 and newer can do. Implementations: `adapters.docker_runtime`, `adapters.fakes.runtime`; one contract suite
tests both.

Labels identify every container: `io.kubernetes.pod.name|namespace|uid`, `io.kubernetes.container.name`,
`chronolet/node`, `chronolet/attempt`, `chronolet/cause` (the log position of its request), `chronolet/run` (the run of
that log), `chronolet/spec-hash`; and, except for sandboxes, `chronolet/digest` (a hash of everything that the container
was created from).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from chronolet.ports.runtime.streams import Attachment, Stream
from chronolet.rules.names.registry_keys import Credential
from chronolet.rules.resources.cgroups import QUOTA_PERIOD_MICROSECONDS, Values


class Plain(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of the port's records."""


class Mount(Plain, frozen=True, kw_only=True):
    """A folder or file on the host, mounted in a container."""

    source: str
    target: str
    read_only: bool = False
    propagation: Literal["", "rslave", "rshared"] = ""
    """Propagation of later mounts: none (empty), from the host to the container, or both ways."""
    has_to_be: bool = False
    """Whether the source must already exist. If False, a missing source is created as a folder."""


class Device(Plain, frozen=True, kw_only=True):
    """A device file of the host, made available in a container. `permissions`: any of r, w and m (mknod)."""

    source: str
    target: str
    permissions: str = "rwm"


class PortMapping(Plain, frozen=True, kw_only=True):
    """A host port that is forwarded to a port of the sandbox."""

    host_ip: str = ""
    host_port: int
    container_port: int
    protocol: Literal["tcp", "udp", "sctp"] = "tcp"


class SandboxSpec(Plain, frozen=True, kw_only=True):
    """The container that holds a pod's namespaces. If it uses the host's network, it has the host's hostname and no
    port mappings.
    """

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
    """Parent cgroup; if empty, the runtime's default is used."""
    oom_score_adj: int = 0


class ContainerSpec(Plain, frozen=True, kw_only=True):
    """One container that joins a sandbox. An empty `command` or `args` means the image's own."""

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
    """Fully qualified names, vendor/class=name; only for engines that support CDI."""
    cpu_milli: int = 0
    """CPU limit in thousandths of a processor; 0 means no limit."""
    cpu_period_us: int = QUOTA_PERIOD_MICROSECONDS
    memory_bytes: int = 0
    cpu_shares: int = 2
    cgroup_parent: str = ""
    """Parent cgroup, as for the sandbox."""
    oom_score_adj: int = 0
    """From -1000 (never OOM-killed) to 1000 (killed first)."""
    pid: str = ""
    """PID namespace: empty for a new one, `host`, or the id of the container whose namespace is shared."""
    host_ipc: bool = False
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False
    user: str = ""
    """`uid[:gid]`; if empty, the image's user is used."""
    groups: Sequence[int] = ()
    privileged: bool = False
    cap_add: Sequence[str] = ()
    cap_drop: Sequence[str] = ()
    read_only_root: bool = False
    security_options: Sequence[str] = ()
    """Security options in Docker's notation: `no-new-privileges`, `seccomp=<profile or unconfined>`, `apparmor=<name>`,
    `label=...`.
    """
    stop_signal: str = ""
    """If empty, the image's stop signal is used."""
    held: Values = Values()
    """Additional cgroup values for the running container. The caller, not the runtime, writes them after the start."""


State = Literal["created", "running", "exited", "removed", "unknown"]


class ContainerState(Plain, frozen=True, kw_only=True):
    """One container as the runtime reports it. Times are in milliseconds since the epoch, 0 if unknown.

    `detailed` is False if only a listing reported it: then `created_at` is the only known time, and exit code and error
    are unknown.
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
    """The program that the container was created to run, with its arguments. The container's first process has this
    command line once it has executed the program.
    """
    stop_signal: str = "TERM"
    """The signal that asks the container to stop."""
    sandbox_id: str = ""
    """The id of the container whose network this container has joined."""
    host_network: bool = False
    """Whether the container itself uses the machine's network; False if it has joined another container's network."""
    detailed: bool = True

    @property
    def half_restored(self) -> bool:
        """Whether the container is running, but the runtime knows neither its start time nor its address nor its IPC
        namespace, because the runtime was killed after it had started the container's process and before it recorded
        the start. No other container can join such a container.
        """
        return self.detailed and self.state == "running" and not self.started_at


class Notice(Plain, frozen=True, kw_only=True):
    """One line of the runtime's event stream, about a container of this node."""

    action: Literal["create", "start", "kill", "die", "destroy", "oom"]
    id: str
    labels: Mapping[str, str]
    at: int
    """Milliseconds since the epoch."""
    exit_code: int | None = 0
    """For `die`; None if a label of the image hides it."""
    signal: int | None = 0
    """The number of the signal that a client had the runtime send, for `kill`. The notice precedes that of a death by
    this signal. For any action, None if a label of the image hides the numbers of this container's signals."""


class ExecState(Plain, frozen=True, kw_only=True):
    """A command prepared in a container. `exit_code` is None until the command has ended."""

    running: bool
    exit_code: int | None = None


class ExecResult(Plain, frozen=True, kw_only=True):
    """The result of a command in a container. `output`: both streams in order of arrival, truncated to 16 KiB."""

    output: bytes
    exit_code: int


class BuiltImage(Plain, frozen=True, kw_only=True):
    """A root file system as a tar archive, and the Dockerfile instructions for its import."""

    archive: bytes
    changes: Sequence[str]


class ImageState(Plain, frozen=True, kw_only=True):
    """An image that is present. `digests`: its names in registries, `host/path@sha256:...`. `user`: the user that its
    containers run as, empty for root.
    """

    id: str
    size_bytes: int
    digests: Sequence[str] = ()
    user: str = ""


class PullStep(Plain, frozen=True, kw_only=True):
    """One progress message of a pull, about one layer or about the whole image (then `layer` is a tag or empty).

    `done` and `total`: bytes of the phase that `status` names, 0 if it has none.
    """

    layer: str = ""
    status: str
    done: int = 0
    total: int = 0


class Engine(Plain, frozen=True, kw_only=True):
    """The runtime's identity and configuration."""

    name: str
    version: str
    api_version: str
    id: str = ""
    """The engine's id, stored in its data folder; distinguishes engines behind one address. Empty if it has none."""
    root: str = ""
    cgroup_driver: str = ""
    cgroup_version: str = ""
    knows_cdi: bool = False
    """Whether the engine accepts device names of the Container Device Interface."""
    warnings: Sequence[str] = ()


class EngineIdentity(Plain, frozen=True, kw_only=True):
    """What tells one engine from another. `id` alone does not: two engines of one machine may report the same one. See
    `Engine`.
    """

    id: str
    root: str


RefusalKind = Literal[
    "not_found", "conflict", "invalid", "no_space", "unavailable", "denied", "failed", "interrupted", "timeout"
]


class Refusal(Exception):  # noqa: N818 - the runtime's answer, expected by every caller
    """The runtime refused a call. `unavailable` and `timeout` may be temporary. `interrupted`: the runtime was killed
    during an earlier start of the container, and can neither start it again nor end its process. The message is the
    runtime's own.
    """

    def __init__(self, kind: RefusalKind, message: str) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind


class Runtime(Protocol):
    """A container runtime. Each method may raise `Refusal`; the kinds that callers handle are named below (such as
    `conflict`). Except for the streams (`follow`, `logs`, `pull`, `attach_exec`) and `run_exec` without a time-out, no
    method blocks longer than its time-out.
    """

    def engine(self) -> Engine:
        """Identify the engine. Raises `unavailable` if none answers."""

    def create_sandbox(self, spec: SandboxSpec) -> str:
        """Create the sandbox without starting it; returns its id. Raises `conflict` if the name is taken."""

    def create_container(self, spec: ContainerSpec) -> str:
        """Create the container without starting it; returns its id. Raises `conflict` if the name is taken, and
        `not_found` if the image is missing.
        """

    def start(self, container_id: str) -> None:
        """Start a created container. Raises `failed`, with the runtime's message, if its command cannot be run."""

    def inspect(self, container_id_or_name: str, *, timeout_seconds: float = 10.0) -> ContainerState | None:
        """Return the full state of one container; None if it does not exist."""

    def kill(self, container_id: str, signal: str = "KILL") -> None:
        """Send a signal; no-op for a dead or absent container."""

    def wait(self, container_id: str, timeout_seconds: float) -> bool:
        """Wait until the container is no longer running or is absent. Returns False if it is still running after the
        time-out.

        There is no call that stops a container and waits: a grace period may last an hour, and during that time, the
        caller must be able to shorten it.
        """

    def remove(self, container_id: str) -> None:
        """Remove a container, running or not, with its anonymous volumes; no-op if it is absent."""

    def remove_dead(self, container_id: str) -> None:
        """Remove a container that is not running, as `remove` does. Raises `conflict` if it is running."""

    def forget_endpoint(self, name: str) -> None:
        """Release the network endpoint left behind by an absent container with this name; no-op if there is none.

        A killed or overloaded engine may fail to release it; then no container with that name can start.
        """

    def list(self, labels: Mapping[str, str]) -> Sequence[ContainerState]:
        """Return all containers with these labels, including dead ones. `detailed` is False in each of them."""

    def follow(
        self, labels: Mapping[str, str], since: int | None, opened: Callable[[Stream], None]
    ) -> Iterator[Notice]:
        """Stream notices about containers with these labels, starting at `since` (milliseconds) if it is given.

        `opened` receives the stream once it is open, so that another thread can close it. When the stream breaks, the
        iteration ends or raises `unavailable`.
        """

    def written_bytes(self, container_id: str) -> int:
        """Return the size of a container's writable layer in bytes; 0 if the container does not exist."""

    def image(self, reference: str) -> ImageState | None:
        """Return the image, or None if it is not present."""

    def pull(
        self,
        reference: str,
        progress: Callable[[PullStep], None],
        *,
        credential: Credential | None = None,
        opened: Callable[[Stream], None] = lambda _: None,
        silence_seconds: float = 120.0,
    ) -> ImageState:
        """Pull an image. `opened` receives the stream, which another thread may close to abort the pull.

        The pull is aborted after `silence_seconds` without a progress message. Raises `denied` if the registry requires
        other credentials, and `unavailable` if it cannot be reached.
        """

    def import_image(self, reference: str, archive: bytes, changes: Sequence[str]) -> str:
        """Create a local image from a root file system (a tar archive); returns its id."""

    def logs(
        self, container_id: str, *, follow: bool, tail: int | None, since: int | None, timestamps: bool
    ) -> Iterator[tuple[str, bytes]]:
        """Yield chunks of output as (`stdout` or `stderr`, bytes), oldest first; with a terminal, all are `stdout`.
        `follow`: continue until the container stops. `tail`: only this many of the last lines; `since`: only output
        since this time (milliseconds); for both, None means no restriction. `timestamps`: begin each line with its
        time.
        """

    def log_path(self, container_id: str) -> str:
        """Return the path, on the runtime's machine, of the log file with all of the container's output."""

    def create_exec(
        self,
        container_id: str,
        command: Sequence[str],
        *,
        tty: bool = False,
        stdin: bool = False,
        env: Mapping[str, str] = {},
    ) -> str:
        """Prepare a command in a running container; returns the exec's id. Raises `conflict` if the container is not
        running.
        """

    def inspect_exec(self, exec_id: str) -> ExecState | None:
        """Return the state of an exec; None if it is unknown: the runtime forgets an exec when the container or the
        runtime itself stops.
        """

    def find_execs(self, container_id: str, mark: tuple[str, str]) -> Sequence[str]:
        """Return the ids of the running commands in a container that have the variable `mark` (name, value) in their
        environment, whichever process started them; empty if the container is not running.
        """

    def exec_seconds(self, exec_id: str) -> float | None:
        """Return for how many seconds a command and its children have used a CPU or waited for one; None if the command
        is not running.
        """

    def run_exec(
        self,
        exec_id: str,
        timeout_seconds: float = 0.0,
        *,
        cancelled: threading.Event | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> ExecResult:
        """Start a prepared command and wait until it ends; 0 seconds means no time-out. `meanwhile` is called
        repeatedly during the wait.

        A command can be started only once: raises `conflict` if it was started before, `not_found` if the runtime has
        forgotten it. Raises `timeout` when the time-out has passed or `cancelled` is set; the command continues. If the
        container exits, the result is exit code 137, or `not_found` is raised. For a missing executable, the exit code
        is 126 or 127, and the output is the runtime's message. Raises `failed` if the command cannot be started for
        another reason (no more file descriptors, the container is about to exit).
        """

    def kill_exec(self, exec_id: str) -> None:
        """Kill a command, its process group and its children; no-op if the command is not running."""

    def attach_exec(self, exec_id: str, *, tty: bool = False) -> Attachment:
        """Start a prepared command and connect to its streams. Raises `conflict` if it was started before."""

    def resize_exec(self, exec_id: str, rows: int, columns: int) -> None:
        """Set the size of a command's terminal. Raises `failed` or `not_found` if the command is not running yet."""

    def close(self) -> None:
        """Close all connections."""
