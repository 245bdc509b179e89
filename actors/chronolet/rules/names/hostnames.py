"""A pod's host name and domain, and the contents of its /etc/hosts and resolv.conf. Pure.

Input: a Pod, its address, the node's own files. Output: names and file contents. Next: the pod's workers.
Source: pkg/kubelet/kubelet_pods.go (GeneratePodHostNameAndDomain, managedHostsFileContent),
pkg/kubelet/network/dns/dns.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from chronolet_schemas.podspec import Pod

LONGEST_HOSTNAME = 63
LONGEST_FQDN = 64
MOST_NAMESERVERS = 3

_LOCAL_NAMES = """\
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


class HostnameError(ValueError):
    """The host name cannot be used; the message is the kubelet's."""


class Resolver(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a resolv.conf."""

    nameservers: Sequence[str] = ()
    searches: Sequence[str] = ()
    options: Sequence[str] = ()


def host_name(pod: Pod) -> str:
    """Return the pod's short host name: spec.hostname, or else the pod's name, truncated to the maximum length."""
    return (pod.spec.hostname or pod.metadata.name)[:LONGEST_HOSTNAME].rstrip("-.")


def domain(pod: Pod) -> str:
    """Return the pod's domain, without a cluster domain because there is none; empty if the pod sets no subdomain."""
    return f"{pod.spec.subdomain}.{pod.metadata.namespace}.svc" if pod.spec.subdomain else ""


def kernel_name(pod: Pod) -> str:
    """Return the host name that is set in the kernel and that `hostname` prints. Raises HostnameError if the pod
    requests an FQDN that is too long.
    """
    if pod.spec.hostname_override:
        return pod.spec.hostname_override
    if not (pod.spec.set_hostname_as_fqdn and pod.spec.subdomain):
        return host_name(pod)
    full = f"{host_name(pod)}.{domain(pod)}"
    if len(full) > LONGEST_FQDN:
        raise HostnameError(
            f"failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too long "
            f"({LONGEST_FQDN} characters is the max, {len(full)} characters requested)"
        )
    return full


def hosts_file(pod: Pod, address: str, of_node: str) -> str:
    """Return the content of /etc/hosts. With host networking, it is that of the node's file, `of_node`, plus the pod's
    aliases.
    """
    if pod.spec.host_network:
        begin = f"# Kubernetes-managed hosts file (host network).\n{of_node}"
    else:
        own = pod.spec.hostname_override or host_name(pod)
        name = f"{own}.{domain(pod)}\t{own}" if pod.spec.subdomain and not pod.spec.hostname_override else own
        begin = f"# Kubernetes-managed hosts file.\n{_LOCAL_NAMES}{address}\t{name}\n"
    aliases = "".join(f"{alias.ip}\t{chr(9).join(alias.hostnames)}\n" for alias in pod.spec.host_aliases)
    return f"{begin}\n# Entries added by HostAliases.\n{aliases}" if aliases else begin


def own_resolver(pod: Pod) -> bool:
    """Return whether the pod needs a resolv.conf that differs from the node's."""
    return pod.spec.dns_policy == "None" or pod.spec.dns_config is not None


def resolv_conf(pod: Pod, of_node: str) -> str:
    """Return the content of /etc/resolv.conf for a pod that extends the node's file or replaces it (dnsPolicy None)."""
    base = Resolver() if pod.spec.dns_policy == "None" else parsed(of_node)
    added = pod.spec.dns_config
    if added is not None:
        options = [f"{one.name}:{one.value}" if one.value is not None else one.name for one in added.options]
        base = Resolver(
            nameservers=_once((*base.nameservers, *added.nameservers)),
            searches=_once((*base.searches, *added.searches)),
            options=_latest((*base.options, *options)),
        )
    lines = [f"nameserver {address}" for address in base.nameservers[:MOST_NAMESERVERS]]
    lines += [f"search {' '.join(base.searches)}"] if base.searches else []
    lines += [f"options {' '.join(base.options)}"] if base.options else []
    return "".join(f"{line}\n" for line in lines)


def parsed(text: str) -> Resolver:
    """Parse a resolv.conf as resolvers do: the last search line wins."""
    nameservers: list[str] = []
    searches: Sequence[str] = ()
    options: list[str] = []
    for words in (line.split() for line in text.splitlines()):
        match words:
            case ["nameserver", address, *_]:
                nameservers.append(address)
            case ["search", *names]:
                searches = names
            case ["options", *given]:
                options += given
            case _:
                pass
    return Resolver(nameservers=nameservers, searches=searches, options=options)


def _once(values: Iterable[str]) -> Sequence[str]:
    return tuple(dict.fromkeys(values))


def _latest(options: Iterable[str]) -> Sequence[str]:
    """Return the options, keeping only the last one with each name."""
    return tuple({option.partition(":")[0]: option for option in options}.values())
