"""Validates a pod's namespaces, host names and resolver as the API server does. Pure.

Input: a defaulted pod's spec, its path. Output: problems. Next: `pods`. Source: validateHostNetwork,
validatePodDNSConfig, ValidateHostAliases in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from chronolet.rules.names import names
from chronolet.rules.validation.problems import Problem, name_problems
from chronolet_schemas.podspec import Container, PodSpec

MOST_NAMESERVERS = 3
MOST_SEARCHES = 32
LONGEST_SEARCHES = 2048


def network_problems(path: str, spec: PodSpec, containers: Sequence[tuple[str, Container]]) -> Iterator[Problem]:
    """Yield network problems with the pod and its containers. `containers`: all containers, each with its path."""
    if spec.host_pid and spec.share_process_namespace:
        yield Problem(f"{path}.shareProcessNamespace", "ShareProcessNamespace and HostPID cannot both be enabled")
    if spec.hostname_override and (spec.host_network or spec.set_hostname_as_fqdn):
        other = "hostNetwork" if spec.host_network else "setHostnameAsFQDN"
        yield Problem(f"{path}.hostnameOverride", f"cannot be set together with {other}")
    if spec.host_network:
        yield from _host_ports(containers)
    yield from _resolver(path, spec)
    for index, alias in enumerate(spec.host_aliases):
        here = f"{path}.hostAliases[{index}]"
        yield from _address(f"{here}.ip", alias.ip)
        for number, name in enumerate(alias.hostnames):
            yield from name_problems(f"{here}.hostnames[{number}]", name, names.subdomain_problem)


def _host_ports(containers: Sequence[tuple[str, Container]]) -> Iterator[Problem]:
    for path, container in containers:
        for index, port in enumerate(container.ports):
            if port.host_port != port.container_port:
                here = f"{path}.ports[{index}].hostPort"
                yield Problem(here, f"{port.host_port} must match `containerPort` when `hostNetwork` is true")


def _resolver(path: str, spec: PodSpec) -> Iterator[Problem]:
    config = spec.dns_config
    if spec.dns_policy == "None" and (config is None or not config.nameservers):
        here = f"{path}.dnsConfig.nameservers"
        yield Problem(here, "missing, expected at least one nameserver when `dnsPolicy` is None")
    if config is not None:
        yield from _nameservers(f"{path}.dnsConfig.nameservers", config.nameservers)
        yield from _searches(f"{path}.dnsConfig.searches", config.searches)
        for index, option in enumerate(config.options):
            if not option.name:
                yield Problem(f"{path}.dnsConfig.options[{index}].name", "missing, expected the option's name")


def _nameservers(path: str, addresses: Sequence[str]) -> Iterator[Problem]:
    if len(addresses) > MOST_NAMESERVERS:
        yield Problem(path, f"has {len(addresses)} entries, expected {MOST_NAMESERVERS} at most")
    for index, address in enumerate(addresses):
        yield from _address(f"{path}[{index}]", address)


def _searches(path: str, searches: Sequence[str]) -> Iterator[Problem]:
    if len(searches) > MOST_SEARCHES:
        yield Problem(path, f"has {len(searches)} entries, expected {MOST_SEARCHES} at most")
    if len(" ".join(searches)) > LONGEST_SEARCHES:
        yield Problem(path, f"has more than {LONGEST_SEARCHES} characters")
    for index, search in enumerate(searches):
        if search != ".":
            # Underscores, which occur in service names, are allowed wherever letters are.
            name = search.removesuffix(".").replace("_", "a")
            yield from name_problems(f"{path}[{index}]", name, names.subdomain_problem)


def _address(path: str, text: str) -> Iterator[Problem]:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        yield Problem(path, f"{text!r} is not an IP address")
