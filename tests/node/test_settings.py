"""Settings: names, precedence, the KubeletConfiguration file, and errors about invalid values."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronolet.keeper.policy import Policy as KeeperPolicy
from chronolet.node.settings import table as known
from chronolet.node.settings.common import EVERYWHERE, default_root
from chronolet.node.settings.policies import keeper_policy
from chronolet.node.settings.resolving import resolve
from chronolet.node.settings.values import SettingsError, duration
from chronolet_schemas import container_gc, image_gc

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "kubelet.yaml"
    path.write_text(KUBELET + text)
    return path


def test_precedence_is_flag_environment_file_default(tmp_path: Path) -> None:
    config = write(tmp_path, "readOnlyPort: 1003\n")
    environment = {"CHRONOLET_PORT": "1002"}
    assert resolve({"port": "1001"}, environment, config)[0].port == 1001
    assert resolve({"port": None}, environment, config)[0].port == 1002
    assert resolve({}, {}, config)[0].port == 1003
    assert resolve({}, {})[0].port == 10255


def test_the_address_of_the_pages() -> None:
    assert resolve({"port": "1001"}, {})[0].http_address == "127.0.0.1:1001"
    assert resolve({"port": "0"}, {})[0].http_address == ""


def test_every_field_of_the_file_is_used_or_remarked_on(tmp_path: Path) -> None:
    text = "staticPodPath: /etc/pods\nlogging: {format: json}\nfailSwapOn: true\neviction: {hard: {a: 1}}\nempty: {}\n"
    settings, remarks = resolve({}, {}, write(tmp_path, text))
    assert (settings.pod_manifest_path, settings.log_format) == ("/etc/pods", "json")
    path = tmp_path / "kubelet.yaml"
    assert remarks == tuple(
        f"{path}: {field}: not used by chronolet" for field in ("failSwapOn", "eviction.hard.a", "empty")
    )


def test_settings_for_sharing_the_node(tmp_path: Path) -> None:
    text = (
        "maxPods: 7\npodPidsLimit: -1\nenforceNodeAllocatable: [none]\nqosReserved: {memory: 50%}\n"
        "kubeReserved: {cpu: 100m, memory: 1Gi}\nevictionHard: {memory.available: 5%}\ncgroupRoot: /a/b\n"
        "cpuCFSQuota: false\ncpuCFSQuotaPeriod: 50ms\nmemoryReservationPolicy: TieredReservation\n"
        "memoryThrottlingFactor: 0.9\n"
    )
    found, remarks = resolve({"system_reserved": "cpu=1, pid=100"}, {}, write(tmp_path, text))
    assert remarks == ()
    assert (found.max_pods, found.pod_max_pids, found.enforce_node_allocatable) == (7, 0, ("none",))
    assert (found.system_reserved, found.kube_reserved) == (
        {"cpu": "1", "pid": "100"},
        {"cpu": "100m", "memory": "1Gi"},
    )
    assert (found.qos_reserved, found.eviction_hard) == ({"memory": "50%"}, {"memory.available": "5%"})
    assert (found.cgroup_root, found.cpu_cfs_quota, found.cpu_cfs_quota_period) == ("/a/b", False, 50)
    assert (found.memory_reservation_policy, found.memory_throttling_factor) == ("TieredReservation", 0.9)
    assert resolve({"memory_throttling_factor": ""}, {})[0].memory_throttling_factor is None
    assert resolve({"cgroup_root": "machines-x.slice"}, {})[0].cgroup_root == "/machines/x"
    assert resolve({"enforce_node_allocatable": ""}, {})[0].enforce_node_allocatable == ()
    assert resolve({"pod_max_pids": "5"}, {})[0].pod_max_pids == 5


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"system_reserved": "cpu:1"}, "--system-reserved: found 'cpu:1', expected pairs such as name=amount"),
        ({"system_reserved": "gpu=1"}, "--system-reserved: found 'gpu', expected some of cpu, memory"),
        ({"kube_reserved": "cpu=1x"}, "--kube-reserved: cpu: '1x' has the unknown suffix 'x'"),
        ({"kube_reserved": "cpu=10%"}, "--kube-reserved: cpu: '10%' is not a quantity"),
        ({"kube_reserved": "cpu=-1"}, "--kube-reserved: cpu: found '-1', expected 0 or more"),
        ({"qos_reserved": "memory=5"}, "--qos-reserved: memory: found '5', expected a share from 0% to 100%"),
        ({"qos_reserved": "memory=101%"}, "--qos-reserved: memory: found '101%'"),
        ({"cpu_cfs_quota_period": "2s"}, "--cpu-cfs-quota-period: found 2000ms, expected a duration from 1ms to 1s"),
        *(
            (
                {"memory_throttling_factor": found},
                f"--memory-throttling-factor: found '{found}', expected a number above 0",
            )
            for found in ("0", "1.1", "x", "nan")
        ),
        ({"cgroup_root": "/a/../b"}, "--cgroup-root: found '/a/../b', expected the path of a cgroup"),
        ({"pod_max_pids": "-2"}, "--pod-max-pids: found '-2', expected a whole number from 0 to 4194304"),
        ({"port": "70000"}, "--port: found '70000', expected a whole number from 0 to 65535"),
        ({"port": "x"}, "--port: found 'x', expected a whole number from 0 to 65535"),
        (
            {"redis": "localhost:6379"},
            "--redis: the URL is not a URL of a Redis server, expected unix://SOCKET",
        ),
        ({"actors": "pod,cook"}, f"--actors: found 'pod,cook', expected some of {', '.join(known.ALL_ACTORS)}"),
        ({"pleg_relist_period": "10"}, "--pleg-relist-period: found '10', expected a duration above zero"),
        *(
            (
                {"max_container_restart_period": found},
                f"--max-container-restart-period: found '{found}', expected a duration in whole seconds from 1s",
            )
            for found in ("0s", "301s", "1500ms", "5")
        ),
        ({"node": " "}, "--hostname-override: found ' ', expected text"),
        (
            {"minimum_container_ttl_duration": "-1m"},
            "--minimum-container-ttl-duration: found '-1m', expected a duration such as 0s",
        ),
        ({"minimum_image_ttl_duration": "5 weeks"}, "--minimum-image-ttl-duration: found '5 weeks', expected a dur"),
        ({"image_maximum_gc_age": ""}, "--image-maximum-gc-age: found '', expected a duration such as 0s"),
        (
            {"maximum_dead_containers": "1.5"},
            "--maximum-dead-containers: found '1.5', expected a whole number, negative",
        ),
        ({"image_gc_high_threshold": "101"}, "--image-gc-high-threshold: found '101', expected a whole number from 0"),
        (
            {"image_gc_low_threshold": "85"},
            "--image-gc-low-threshold: low threshold: found 85, expected less than the high threshold, 85",
        ),
        ({"image_maximum_gc_age": "2m"}, "--image-maximum-gc-age: maximum age: found 120000 ms, expected more than"),
        ({"pinned_images": "a,,b"}, "--pinned-images: found '', expected text"),
        ({"event_webhook_url": "http:///hook"}, "--event-webhook-url: found 'http:///hook', expected a URL such as"),
        *(
            (
                {"event_webhook_url": f"http://host/{path}"},
                "--event-webhook-url: found a character that URLs cannot contain",
            )
            for path in ("a b", "hook-\u00e9", "?key=\u00e9")
        ),
        ({"docker": "ssh://me:S3CRET@[::1"}, "--docker: found a URL that cannot be parsed, expected a URL such as"),
        (
            {"redis": "redis://h?foo=bar"},
            "--redis: the URL has the unknown option 'foo', expected one of db",
        ),
        ({"redis": "redis://:pw@h"}, "--redis: found a password, but every user of this machine can read"),
        ({"redis_appendfsync": "often"}, "--redis-appendfsync: found 'often', expected one of always, everysec"),
        ({"redis_maxmemory": "63"}, "--redis-maxmemory: found '63', expected a whole number from 64 to 1048576"),
        ({"process_name": "a/b"}, "--process-name: found 'a/b', expected at most 63 letters, digits, '-', '_' or"),
        ({"process_name": "-a"}, "--process-name: found '-a', expected at most 63 letters"),
    ],
)
def test_an_error_names_the_flag_the_found_and_the_expected_value(flags: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as error:
        resolve(flags, {})
    assert str(error.value).startswith(message)


URL = "redis://h:1/2"


@pytest.mark.parametrize(
    ("flags", "environment", "url"),
    [
        ({"redis": URL}, {}, URL),
        ({"redis": URL}, {"CHRONOLET_REDIS_PASSWORD": "p/?#@:%"}, "redis://:p%2F%3F%23%40%3A%25@h:1/2"),
        ({"redis": "unix://me@/s"}, {"CHRONOLET_REDIS_PASSWORD": "pw"}, "unix://me:pw@/s"),
        ({}, {"CHRONOLET_REDIS": "redis://:pw@h"}, "redis://:pw@h"),
        ({"redis": URL, "redis_password_file": "{file}"}, {}, "redis://:of%20file@h:1/2"),
        ({}, {"CHRONOLET_REDIS": URL, "CHRONOLET_REDIS_PASSWORD_FILE": "{file}"}, "redis://:of%20file@h:1/2"),
        ({"redis_password_file": "{file}"}, {}, None),
        ({}, {"CHRONOLET_REDIS_PASSWORD": "pw"}, None),
    ],
)
def test_sources_of_the_redis_password(
    flags: dict[str, str], environment: dict[str, str], url: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("of file\n")
    flags = {name: value.format(file=file) for name, value in flags.items()}
    environment = {name: value.format(file=file) for name, value in environment.items()}
    found, _ = resolve(flags | {"root_dir": "/r"}, environment)
    assert found.redis_url == (url or "unix:///r/redis/redis.sock")
    if found.redis_password:
        assert found.redis_password not in repr(found)


@pytest.mark.parametrize("content", [None, b"", b"\n", b"two\nlines", b"\xff", b"x" * 4097, b"nul\0"])
def test_an_unusable_password_file_is_refused(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=rf"--redis-password-file: {file}: (cannot be read|expected one line)"):
        resolve({"redis": URL, "redis_password_file": str(file)}, {})


@pytest.mark.parametrize("name", ["CHRONOLET_REDIS_PASSWORD", "CHRONOLET_REDIS_PASSWORD_FILE"])
def test_a_password_may_be_set_in_one_place_only(name: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("other")
    with pytest.raises(SettingsError, match="the URL of the Redis server also holds a password") as caught:
        resolve({}, {"CHRONOLET_REDIS": "redis://:S3CRET@h", name: str(file)})
    assert "S3CRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- 1", "found list, expected a KubeletConfiguration"),
        ("a: [", "not YAML: "),
        ("kind: Pod\napiVersion: v1", "found apiVersion 'v1', kind 'Pod', expected kubelet.config.k8s.io/v1beta1"),
        (KUBELET + "readOnlyPort: true", "readOnlyPort: found True, expected a whole number"),
    ],
)
def test_an_invalid_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "kubelet.yaml"
    path.write_text(content)
    with pytest.raises(SettingsError) as error:
        resolve({}, {}, path)
    assert str(error.value).startswith(f"{path}: {message}")


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        resolve({}, {}, tmp_path / "none")


@given(st.integers(0, 50), st.integers(0, 59), st.integers(0, 59), st.integers(1, 999))
def test_durations_are_read_as_go_writes_them(hours: int, minutes: int, seconds: int, milliseconds: int) -> None:
    text = f"{hours}h{minutes}m{seconds}s{milliseconds}ms"
    assert duration("d", text) == ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds


@given(st.text())
def test_any_text_is_a_duration_or_an_error_that_names_it(text: str) -> None:
    try:
        outcome = str(duration("--since", text))
    except SettingsError as error:
        outcome = str(error)
    assert outcome.isdigit() or outcome.startswith(f"--since: found {text!r}, expected a duration")


def test_every_setting_has_a_place_and_names_of_its_own() -> None:
    names = [one.name for one in known.SETTINGS]
    # A password has no flag: every user of the machine can read a process's arguments.
    assert {*names, "redis_password"} == set(known.Settings.__struct_fields__)
    for field in ("name", "flag", "env"):
        values = [getattr(one, field) for one in known.SETTINGS]
        assert len(set(values)) == len(values)


def test_actors_come_in_starting_order() -> None:
    assert resolve({"actors": "pleg, pod"}, {})[0].actors == ("pod", "pleg")


def test_without_root_the_state_folder_is_in_the_home_folder() -> None:
    assert default_root(root=True) == Path("/var/lib/chronolet")
    assert default_root(root=False) == Path.home() / ".local/state/chronolet"


def test_the_sockets_of_another_state_folder_are_in_it() -> None:
    assert resolve({"root_dir": "/elsewhere"}, {})[0].kubelet_dir == Path("/elsewhere/kubelet")
    assert resolve({"root_dir": "/var/lib/chronolet"}, {})[0].kubelet_dir == Path("/var/lib/kubelet")
    resolved = resolve({"root_dir": "/elsewhere", "kubelet_dir": "/k"}, {})[0]
    assert resolved.kubelet_dir == Path("/k")


def test_folders_are_separated_by_commas() -> None:
    assert resolve({"cdi_spec_dirs": "/a, /b"}, {})[0].cdi_spec_dirs == (Path("/a"), Path("/b"))
    assert resolve({"cdi_spec_dirs": ""}, {})[0].cdi_spec_dirs == ()


def test_the_text_after_a_servers_name_is_not_interpreted() -> None:
    hook = "https://user:pass@host:8443/a%20b?db=prod"
    assert resolve({"event_webhook_url": hook}, {})[0].event_webhook_url == hook


def test_a_command_reads_only_its_own_settings_from_the_environment() -> None:
    environment = {"CHRONOLET_PORT": "rubbish", "CHRONOLET_ROOT_DIR": "/elsewhere"}
    settings, _ = resolve({}, environment, names=[one.name for one in EVERYWHERE])
    assert (settings.root_dir, settings.port) == (Path("/elsewhere"), 10255)
    with pytest.raises(SettingsError, match="CHRONOLET_PORT: found 'rubbish'"):
        resolve({}, environment)


def test_settings_of_the_collectors(tmp_path: Path) -> None:
    usual = resolve({}, {})[0]
    assert usual.container_policy == container_gc.Policy()
    assert usual.image_policy == image_gc.Policy(pinned=("chronolet/pause:1",))
    assert resolve({"root_dir": "/x"}, {})[0].pod_logs == Path("/x/logs/pods")
    text = (
        "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 60\nimageMinimumGCAge: 0s\n"
        "imageMaximumGCAge: 48h\npodLogsDir: /y\n"
    )
    flags = {
        "minimum_container_ttl_duration": "1m",
        "maximum_dead_containers_per_container": "-7",
        "maximum_dead_containers": "20",
        "pinned_images": "busybox:*, redis",
    }
    settings, remarks = resolve(flags, {}, write(tmp_path, text))
    assert remarks == ()
    assert settings.pod_logs == Path("/y")
    assert settings.container_policy == container_gc.Policy(
        min_age_milliseconds=60_000, max_per_container=-1, max_containers=20
    )
    assert settings.image_policy == image_gc.Policy(
        high_threshold_percent=70,
        low_threshold_percent=60,
        min_age_milliseconds=0,
        max_age_milliseconds=48 * 3_600_000,
        pinned=("busybox:*", "redis", "chronolet/pause:1"),
    )


def test_settings_of_the_overload_protection() -> None:
    found = resolve({}, {})[0]
    assert (found.probe_overload_protection, found.probe_unjudged_limit) == (True, 60_000)
    policy = found.probe_kill_policy
    assert (policy.kills_per_minute, policy.hold_milliseconds, policy.interval) == (10, 60_000, 6_000)
    assert resolve({"probe_overload_protection": "false"}, {})[0].probe_kill_policy.kills_per_minute == 0
    with pytest.raises(SettingsError, match=r"--probe-kills-per-minute: found '0', expected a whole number from 1"):
        resolve({"probe_kills_per_minute": "0"}, {})


def test_how_long_probe_outcomes_are_kept() -> None:
    day = 86_400_000
    assert keeper_policy(resolve({}, {})[0], KeeperPolicy()).probes_max_age == 30 * day == KeeperPolicy().probes_max_age
    found = resolve({"probe_history_max_age": "24h"}, {})[0]
    assert keeper_policy(found, KeeperPolicy()).probes_max_age == day
    assert resolve({}, {"CHRONOLET_PROBE_HISTORY_MAX_AGE": "0"})[0].probe_history_max_age == 0
    with pytest.raises(SettingsError, match=r"--probe-history-max-age: found '-1h', expected a duration such as 0s"):
        resolve({"probe_history_max_age": "-1h"}, {})


def test_settings_of_admission(tmp_path: Path) -> None:
    found, _ = resolve({}, {})
    assert (found.node_labels, found.node_affinity, found.allowed_unsafe_sysctls) == ({}, "warn", ())
    flags = {
        "node_labels": "disk=ssd, example.com/zone=a,empty=",
        "node_affinity": "enforce",
        "allowed_unsafe_sysctls": "kernel.msg*,net.core.somaxconn,kernel/sem",
    }
    found, _ = resolve(flags, {})
    assert found.node_labels == {"disk": "ssd", "example.com/zone": "a", "empty": ""}
    assert (found.node_affinity, found.allowed_unsafe_sysctls) == (
        "enforce",
        ("kernel.msg*", "net.core.somaxconn", "kernel.sem"),
    )
    in_file, remarks = resolve({}, {}, write(tmp_path, "allowedUnsafeSysctls: [net.ipv4.*]\n"))
    assert (in_file.allowed_unsafe_sysctls, remarks) == (("net.ipv4.*",), ())


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"node_labels": "disk"}, "--node-labels: found 'disk', expected pairs such as name=amount"),
        ({"node_labels": "a b=c"}, "--node-labels: a b=c: 'a b' is not allowed"),
        ({"node_labels": "a=b c"}, "--node-labels: a=b c: 'b c' is not allowed"),
        ({"node_affinity": "maybe"}, "--node-affinity: found 'maybe', expected one of warn, enforce"),
        ({"allowed_unsafe_sysctls": "net.*.x"}, "--allowed-unsafe-sysctls: found 'net.*.x', expected a kernel"),
        ({"allowed_unsafe_sysctls": "vm.*"}, "--allowed-unsafe-sysctls: 'vm.*' is not known to belong to a pod's own"),
        ({"max_parallel_starts": "-1"}, "--max-parallel-starts: found '-1', expected"),
    ],
)
def test_invalid_settings_of_admission_are_refused(flags: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError) as error:
        resolve(flags, {})
    assert str(error.value).startswith(problem)
