"""The settings of one process.

Input: none. Output: `Settings`. Next: `common` and `resolving`, which create it. Commands that read a node's log import
this module but not the settings table, and so do not load any actor.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from chronolet.kernel.storage.redis.urls import with_password
from chronolet.node.settings.values import Secret

if TYPE_CHECKING:
    from chronolet.pleg.probe_kills.holding_back import Policy
    from chronolet_schemas import container_gc, image_gc

ALL_ACTORS = (
    "manifests",
    "pod",
    "pleg",
    "prober",
    "devices",
    "qos",
    "container_gc",
    "image_gc",
    "kube_events",
    "keeper",
)
"""The actor kinds of this release. Their hosts start in the order of `Kind.precedence`."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one process. Durations are in milliseconds."""

    node: str
    root_dir: Path
    redis: str = ""
    """URL of the Redis server; if empty, the agent runs its own server in `root_dir`."""
    redis_password_file: Path | None = None
    redis_password: Secret = Secret()
    """Read from `redis_password_file` or the environment. It has no flag, because any user can read a process's flags.
    """
    redis_appendfsync: Literal["always", "everysec"] = "always"
    redis_maxmemory: int = 0
    """In MiB; 0 means a quarter of the machine's memory."""
    archive: str = ""
    """An absolute folder or the URL of a bucket; if empty, the folder `archive` in `root_dir`."""
    actors: tuple[str, ...] = ALL_ACTORS
    process_name: str = ""
    """Empty: a unique name is generated at each start."""
    shards: dict[str, int] = {}
    """Shard counts of a new log, for kinds that are not to have the usual number."""
    docker: str = "unix:///var/run/docker.sock"
    machine_id_file: Path = Path("/etc/machine-id")
    pod_manifest_path: str = ""
    """The manifest folder or file to watch; empty if there is none."""
    file_check_frequency: int = 20_000
    pod_infra_container_image: str = "chronolet/pause:1"
    serialize_image_pulls: bool = True
    max_parallel_image_pulls: int = 0
    """0 means no limit. Ignored if `serialize_image_pulls` is set."""
    image_pull_progress_deadline: int = 60_000
    address: str = "127.0.0.1"
    port: int = 10255
    """0 means no HTTP server."""
    http_allowed_hosts: tuple[str, ...] = ()
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    client_ca_file: str = ""
    http_token_file: Path | None = None
    max_container_restart_period: int = 300_000
    housekeeping_interval: int = 10_000
    pleg_relist_period: int = 10_000
    pleg_relist_threshold: int = 180_000
    kubelet_dir: Path = Path("/var/lib/kubelet")
    """Contains the folders device-plugins, plugins_registry and pod-resources."""
    max_device_plugins: int = 256
    wait_for_resources: bool = True
    topology_manager_policy: Literal["none", "best-effort"] = "none"
    cdi_spec_dirs: tuple[Path, ...] = (Path("/etc/cdi"), Path("/var/run/cdi"))
    max_pods: int = 110
    pod_max_pids: int = 0
    """0 means no limit."""
    cgroups_per_qos: bool = True
    cgroup_root: str = ""
    cgroup_driver: Literal["", "cgroupfs", "systemd"] = ""
    """Empty means the driver that Docker uses."""
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    system_reserved: dict[str, str] = {}
    kube_reserved: dict[str, str] = {}
    eviction_hard: dict[str, str] = msgspec.field(default_factory=lambda: {"memory.available": "100Mi"})
    qos_reserved: dict[str, str] = {}
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period: int = 100
    memory_reservation_policy: Literal["None", "TieredReservation"] = "None"
    memory_throttling_factor: float | None = None
    node_capacity: dict[str, str] = {}
    node_labels: dict[str, str] = {}
    """Labels in addition to those that every node has."""
    node_affinity: Literal["warn", "enforce"] = "warn"
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    max_parallel_starts: int = 32
    admission: tuple[str, ...] | None = None
    """The kinds that pods wait for; None means all of `ADMISSION`."""
    log_format: Literal["text", "json"] = "text"
    tracing_endpoint: str = ""
    """URL of an OpenTelemetry collector; empty means that no traces are made."""
    event_sinks: tuple[str, ...] = ("redis",)
    """Sinks in addition to those that have a URL setting."""
    event_ttl: int = 86_400_000
    event_stream_length: int = 10_000
    event_backlog: int = 1_000
    event_webhook_url: str = ""
    event_webhook_secret_file: str = ""
    event_api_server: str = ""
    event_api_token_file: str = ""
    event_api_ca_file: str = ""
    event_qps: int = 50
    """0 means no limit."""
    event_burst: int = 100
    minimum_container_ttl_duration: int = 0
    maximum_dead_containers_per_container: int = 1
    """A negative number means no limit; the same applies to `maximum_dead_containers`."""
    maximum_dead_containers: int = -1
    container_gc_period: int = 60_000
    container_gc_parallel: int = 8
    pod_logs_dir: Path | None = None
    """None means logs/pods in `root_dir`."""
    image_gc_high_threshold: int = 85
    image_gc_low_threshold: int = 80
    minimum_image_ttl_duration: int = 120_000
    image_maximum_gc_age: int = 0
    """0 means no maximum."""
    image_gc_period: int = 300_000
    image_usage_period: int = 30_000
    pinned_images: tuple[str, ...] = ()
    probe_overload_protection: bool = True
    probe_unjudged_limit: int = 60_000
    probe_kill_hold: int = 60_000
    probe_kills_per_minute: int = 10
    probe_history_max_age: int = 30 * 86_400_000
    """0 means permanently."""

    @property
    def participants(self) -> frozenset[str]:
        """The kinds whose admission pods wait for: those in `admission`. By default all from which pods request
        resources before they start, and `prober`, even those that this process does not host: another process may host
        them, and a pod must not start without their admission.
        """
        if self.admission is not None:
            return frozenset(self.admission)
        from chronolet.node.settings.participants import ADMISSION  # noqa: PLC0415 - loads the pod actor

        return frozenset(ADMISSION)

    @property
    def redis_socket(self) -> Path:
        """The socket of the agent's own redis-server."""
        return self.root_dir / "redis" / "redis.sock"

    @property
    def redis_url(self) -> str:
        """URL of the Redis that holds the node's log: `redis` if set, else the agent's own server."""
        if not self.redis:
            return f"unix://{self.redis_socket}"
        return with_password(self.redis, self.redis_password) if self.redis_password else self.redis

    @property
    def max_concurrent_pulls(self) -> int | None:
        """The concurrency limit for image pulls; None means no limit."""
        return 1 if self.serialize_image_pulls else self.max_parallel_image_pulls or None

    @property
    def container_policy(self) -> container_gc.Policy:
        """The policy that decides which dead containers the collector keeps."""
        from chronolet_schemas import container_gc  # noqa: PLC0415 - only the agent needs it

        return container_gc.Policy(
            min_age_milliseconds=self.minimum_container_ttl_duration,
            max_per_container=self.maximum_dead_containers_per_container,
            max_containers=self.maximum_dead_containers,
        )

    @property
    def image_policy(self) -> image_gc.Policy:
        """The policy that decides which images the collector keeps, always including the sandbox image."""
        from chronolet_schemas import image_gc  # noqa: PLC0415 - only the agent needs it

        return image_gc.Policy(
            high_threshold_percent=self.image_gc_high_threshold,
            low_threshold_percent=self.image_gc_low_threshold,
            min_age_milliseconds=self.minimum_image_ttl_duration,
            max_age_milliseconds=self.image_maximum_gc_age,
            pinned=(*self.pinned_images, self.pod_infra_container_image),
        )

    @property
    def probe_kill_policy(self) -> Policy:
        """The policy for delaying kills for failed probes while the machine is overloaded."""
        from chronolet.pleg.probe_kills.holding_back import Policy  # noqa: PLC0415 - only the agent needs it

        return Policy(
            kills_per_minute=self.probe_kills_per_minute if self.probe_overload_protection else 0,
            hold_milliseconds=self.probe_kill_hold,
        )

    @property
    def pod_logs(self) -> Path:
        """The folder with links to the pods' logs."""
        return self.pod_logs_dir or self.root_dir / "logs" / "pods"

    @property
    def http_address(self) -> str:
        """The HTTP server's address and port; empty if it is off."""
        return f"{self.address}:{self.port}" if self.port else ""
