"""The words that belong to Kubernetes and chronolet, which `anonymising` leaves alone: they identify nobody.

Input: the classes of all events and of the given states. Output: the names of their fields and the fixed values that
these may have, with the words below. So a replaced name is never one that the code compares with. Pure. Next:
`anonymising`, `searching`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

import msgspec

from chronolet_schemas import registry

_WORDS = """
    pod pods POD node nodes container containers sandbox device devices image images secret secrets file files shard
    process resource claim probe probes event events sink run cgroup hook create default kube system public lease
    container_gc image_gc keeper kernel kube_events manifests pleg prober qos log webhook kubernetes redis
    spec status metadata initContainers ephemeralContainers app init sidecar ephemeral apply cli chrono chronolet
    kubepods burstable besteffort guaranteed slice scope docker containerd cri linux io k8s x-k8s
    cpu memory pids hugepages storage ephemeral-storage requests limits
    etc var lib usr local bin sbin opt srv home root tmp run dev proc sys mnt media boot lib64 data log logs conf config
    config.d sh bash ash busybox env cat sleep test true false echo exec kill curl wget python python3 node java nginx
    httpd localhost http https tcp udp sctp grpc unix ssh fd s3 sha256 latest docker.io library sock docker.sock
    web api server worker job main yaml yml json txt service socket group user
    kubernetes.io k8s.io app.kubernetes.io kubectl.kubernetes.io name instance version component part-of managed-by
    always never all any none no yes on off of in to from by for with and or not is was has had the a an it its as at
""".split()  # noqa: SIM905 - a list of a hundred strings is harder to read
"""Fixed words in names that chronolet composes, such as paths of cgroups, and words that any installation has."""


def words(states: Iterable[type[Any]] = ()) -> frozenset[str]:
    """Return all words that are left alone. `states`: the classes of states that are anonymised, too."""
    for kind in registry.KINDS:
        importlib.import_module(f"chronolet_schemas.{kind}")
    found, seen = set(_WORDS), set[Any]()
    for one in (*registry.all_classes(), *states):
        found.update(_of(one, seen))
    return frozenset(found)


def _of(type_: Any, seen: set[Any]) -> Iterator[str]:
    """Yield the names of fields and the fixed values in a type, at any depth."""
    if get_origin(type_) is Literal:
        yield from (value for value in get_args(type_) if isinstance(value, str))
        return
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        if type_ in seen:
            return
        seen.add(type_)
        for field in msgspec.structs.fields(type_):
            yield field.encode_name
            yield from _of(field.type, seen)
    for inner in get_args(type_):
        yield from _of(inner, seen)
