"""Host names of pods, and their files /etc/hosts and /etc/resolv.conf."""

from typing import Any

import pytest

from chronolet.rules.names import hostnames
from chronolet.rules.names.hostnames import HostnameError, Resolver
from chronolet_schemas.podspec import Pod, from_plain

NODE_RESOLVER = "# by hand\nnameserver 10.0.0.1\nsearch old\nsearch a.test b.test\noptions ndots:2 rotate\n\n"


def pod(name: str = "web", **spec: Any) -> Pod:
    metadata = {"name": name, "namespace": "shop"}
    return from_plain({"metadata": metadata, "spec": {"containers": [{"name": "app"}], **spec}})


@pytest.mark.parametrize(
    ("manifest", "short", "domain", "kernel"),
    [
        (pod(), "web", "", "web"),
        (pod("a" * 62 + ".b"), "a" * 62, "", "a" * 62),
        (pod("a" * 70), "a" * 63, "", "a" * 63),
        (pod(hostname="h"), "h", "", "h"),
        (pod(hostname="h", subdomain="s"), "h", "s.shop.svc", "h"),
        (pod(hostname="h", subdomain="s", setHostnameAsFQDN=True), "h", "s.shop.svc", "h.s.shop.svc"),
        (pod(setHostnameAsFQDN=True), "web", "", "web"),
        (pod(hostnameOverride="other.name"), "web", "", "other.name"),
    ],
)
def test_host_names(manifest: Pod, short: str, domain: str, kernel: str) -> None:
    assert hostnames.host_name(manifest) == short
    assert hostnames.domain(manifest) == domain
    assert hostnames.kernel_name(manifest) == kernel


def test_a_full_name_that_is_too_long_is_refused() -> None:
    long = pod("a" * 60, subdomain="s", setHostnameAsFQDN=True)
    with pytest.raises(HostnameError, match=r"FQDN a+\.s\.shop\.svc is too long \(64 characters is the max, 71 char"):
        hostnames.kernel_name(long)


def test_the_hosts_file() -> None:
    lines = hostnames.hosts_file(pod(), "10.1.2.3", "ignored").splitlines()
    assert lines[0] == "# Kubernetes-managed hosts file."
    assert "127.0.0.1\tlocalhost" in lines
    assert lines[-1] == "10.1.2.3\tweb"


def test_the_hosts_file_with_a_domain_and_aliases() -> None:
    aliases = [{"ip": "1.2.3.4", "hostnames": ["a", "b.test"]}, {"ip": "::5", "hostnames": ["c"]}]
    written = hostnames.hosts_file(pod(subdomain="s", hostAliases=aliases), "10.1.2.3", "ignored")
    assert written.endswith(
        "10.1.2.3\tweb.s.shop.svc\tweb\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb.test\n::5\tc\n"
    )


def test_the_hosts_file_with_another_host_name() -> None:
    written = hostnames.hosts_file(pod(subdomain="s", hostnameOverride="o"), "10.1.2.3", "ignored")
    assert written.endswith("10.1.2.3\to\n")


def test_the_hosts_file_on_the_nodes_network() -> None:
    aliases = [{"ip": "1.2.3.4", "hostnames": ["a"]}]
    written = hostnames.hosts_file(pod(hostNetwork=True, hostAliases=aliases), "10.0.0.1", "127.0.0.1\tnode\n")
    assert written == (
        "# Kubernetes-managed hosts file (host network).\n127.0.0.1\tnode\n"
        "\n# Entries added by HostAliases.\n1.2.3.4\ta\n"
    )


@pytest.mark.parametrize(
    ("spec", "own"),
    [
        ({}, False),
        ({"dnsPolicy": "Default"}, False),
        ({"dnsPolicy": "None"}, True),
        ({"dnsConfig": {"searches": ["x"]}}, True),
    ],
)
def test_which_pods_need_a_resolver_file_of_their_own(spec: dict[str, Any], own: bool) -> None:
    assert hostnames.own_resolver(pod(**spec)) is own


def test_a_resolver_file_is_read() -> None:
    assert hostnames.parsed(NODE_RESOLVER) == Resolver(
        nameservers=["10.0.0.1"], searches=["a.test", "b.test"], options=["ndots:2", "rotate"]
    )


def test_options_of_a_pod_extend_the_nodes_resolver() -> None:
    added = {
        "nameservers": ["10.0.0.2", "10.0.0.1", "10.0.0.3", "10.0.0.4"],
        "searches": ["b.test", "c.test"],
        "options": [{"name": "ndots", "value": "5"}, {"name": "edns0"}],
    }
    assert hostnames.resolv_conf(pod(dnsConfig=added), NODE_RESOLVER) == (
        "nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n"
        "search a.test b.test c.test\noptions ndots:5 rotate edns0\n"
    )


def test_a_pod_may_have_a_resolver_without_the_nodes() -> None:
    only = {"nameservers": ["1.1.1.1"]}
    assert hostnames.resolv_conf(pod(dnsPolicy="None", dnsConfig=only), NODE_RESOLVER) == "nameserver 1.1.1.1\n"
    assert hostnames.resolv_conf(pod(dnsPolicy="None"), NODE_RESOLVER) == ""
