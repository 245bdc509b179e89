"""The Compose files merge into services that host every actor, each with access only to what it needs on the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from chronolet.node.settings.settings import ALL_ACTORS
from tests.compose.files import FOLDER, PLAIN, ROOT, SCALED, TLS, services

ALL = (PLAIN, SCALED, TLS, (*SCALED, "tls.yaml", "scale-tls.yaml"))
OTHERS = {"redis", "prometheus"}


def agents(files: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return {name: one for name, one in services(files).items() if name not in OTHERS}


def mounts(service: Mapping[str, Any]) -> dict[str, str]:
    """Return the mode of each mount of a service, such as `ro` or `rshared`, by its path in the container."""
    parts = [volume.split(":") for volume in service["volumes"]]
    return {target: mode for _, target, mode in parts}


@pytest.mark.parametrize("files", ALL, ids="+".join)
def test_the_files_work_with_old_and_new_compose(files: tuple[str, ...]) -> None:
    assert {"node", "prober", "collectors", "events", "keeper", *OTHERS} <= services(files).keys()
    for name in files:
        text = yaml.safe_load((FOLDER / name).read_text())
        assert {key for key in text if not key.startswith("x-")} <= {"services", "volumes"}, name


@pytest.mark.parametrize("files", ALL, ids="+".join)
def test_every_actor_is_hosted_and_no_port_is_used_twice(files: tuple[str, ...]) -> None:
    environs = [one["environment"] for one in agents(files).values()]
    hosted = Counter(actor for environ in environs for actor in environ["CHRONOLET_ACTORS"].split(","))
    scaled = {"prober", "pod"} if "scale.yaml" in files else set[str]()
    assert hosted == {actor: 3 if actor in scaled else 1 for actor in ALL_ACTORS}
    ports = [environ["CHRONOLET_PORT"] for environ in environs]
    assert len(set(ports)) == len(ports)
    # One node: the same name, log and state folder.
    for name in ("CHRONOLET_REDIS", "CHRONOLET_HOSTNAME_OVERRIDE", "CHRONOLET_ROOT_DIR"):
        assert len({environ[name] for environ in environs}) == 1, name


@pytest.mark.parametrize("files", [PLAIN, SCALED], ids="+".join)
def test_prometheus_scrapes_every_process(files: tuple[str, ...]) -> None:
    found = agents(files)
    (mounted,) = [
        volume for volume in services(files)["prometheus"]["volumes"] if volume.endswith("/prometheus.yml:ro")
    ]
    jobs = {one["job_name"]: one for one in yaml.safe_load(open(mounted.split(":")[0]).read())["scrape_configs"]}  # noqa: PTH123, SIM115

    def scraped(job: str) -> set[str]:
        return {target.rpartition(":")[2] for one in jobs[job]["static_configs"] for target in one["targets"]}

    def ports(actor: str = "") -> set[str]:
        environs = [one["environment"] for one in found.values()]
        return {one["CHRONOLET_PORT"] for one in environs if actor in ("", *one["CHRONOLET_ACTORS"].split(","))}

    assert scraped("kubelet") == ports()
    for job, actor in (("probes", "prober"), ("cadvisor", "pleg"), ("kube-state-metrics", "pod")):
        assert scraped(job) == ports(actor), job


@pytest.mark.parametrize("files", ALL, ids="+".join)
def test_no_service_has_more_rights_than_its_part_needs(files: tuple[str, ...]) -> None:
    found = services(files)
    for name, one in found.items():
        assert one["cap_drop"] == ["ALL"], name
        assert one["read_only"] is True, name
        assert "no-new-privileges:true" in one["security_opt"], name
        assert "privileged" not in one, name
        assert "ports" not in one, "nothing but loopback addresses of the node"
    assert {found[name]["user"].split(":")[0] for name in OTHERS} == {"999", "65534"}
    nodes = {name for name in found if name == "node" or name.startswith("pod-")}
    probers = {name for name in found if name.startswith("prober")}
    engine = {name for name, one in found.items() if "/var/run/docker.sock" in mounts(one)}
    assert engine == nodes | probers | {"collectors"}
    assert {name for name, one in found.items() if "/sys/fs/cgroup" in mounts(one)} == nodes
    assert {name for name, one in found.items() if one.get("pid") == "host"} == nodes | probers
    assert {name for name, one in found.items() if "SYS_ADMIN" in one.get("cap_add", ())} == nodes
    assert {name for name, one in found.items() if one.get("cap_add")} == nodes | probers | {"collectors"}
    assert all(mounts(one).get("/run/redis", "ro") == "ro" for one in found.values())


def test_the_groups_are_those_of_the_units() -> None:
    found = agents(PLAIN)
    units = {path.stem: path.read_text().splitlines() for path in (ROOT / "deploy/etc/groups").iterdir()}
    assert units.keys() == found.keys()
    for name, lines in units.items():
        environ = found[name]["environment"]
        keys = ("CHRONOLET_ACTORS", "CHRONOLET_PORT", "CHRONOLET_PROCESS_NAME")
        assert [f"{key}={environ[key]}" for key in keys] == lines[1:]


def test_redis_is_as_the_agent_wants_it_with_and_without_tls() -> None:
    plain, tls = (services(files)["redis"]["command"] for files in (PLAIN, TLS))

    def settings(command: list[str]) -> dict[str, str]:
        return dict(zip(command[1::2], command[2::2], strict=True))

    shared = settings(plain).items() & settings(tls).items()
    assert dict(shared) == {
        "--appendonly": "yes",
        "--appendfsync": "always",
        "--aof-load-truncated": "no",
        "--maxmemory-policy": "noeviction",
        "--dir": "/data",
        "--port": "0",
        "--save": "",
    }
    assert settings(tls)["--bind"] == "127.0.0.1"
    assert services(PLAIN)["redis"]["network_mode"] == "none"
    for one in agents(TLS).values():
        assert one["environment"]["CHRONOLET_REDIS"].startswith("rediss://chronolet@127.0.0.1:6380?ssl_ca_certs=")
        assert mounts(one)["/run/tls"] == "ro"


def test_grafana_runs_only_on_request() -> None:
    written = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    assert {name: one["profiles"] for name, one in written.items() if "profiles" in one} == {"grafana": ["grafana"]}
    for volume in written["grafana"]["volumes"]:
        if volume.startswith("./"):
            assert (FOLDER / volume.split(":")[0]).is_dir(), volume
