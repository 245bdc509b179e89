"""The options that a container starts with, merged from the answers of all plugins."""

from chronolet.rules.device_options import cdi_names, merged
from chronolet_schemas.devices import Answer, DeviceNode, Mount


def test_the_first_of_a_name_counts() -> None:
    first = Answer(
        envs={"A": "1"},
        mounts=(Mount(container_path="/m", host_path="/1"),),
        devices=(DeviceNode(container_path="/dev/a", host_path="/dev/1", permissions="r"),),
        annotations={"x": "1"},
        cdi_devices=("v.test/c=1", "v.test/c=1"),
    )
    second = Answer(
        envs={"A": "2", "B": "2"},
        mounts=(Mount(container_path="/m", host_path="/2"), Mount(container_path="/n", host_path="/2")),
        devices=(DeviceNode(container_path="/dev/a", host_path="/dev/2"),),
        annotations={"x": "2", "y": "2"},
        cdi_devices=("v.test/c=2", "v.test/c=1"),
    )
    assert merged([first, second]) == Answer(
        envs={"A": "1", "B": "2"},
        mounts=(Mount(container_path="/m", host_path="/1"), Mount(container_path="/n", host_path="/2")),
        devices=first.devices,
        annotations={"x": "1", "y": "2"},
        cdi_devices=("v.test/c=1", "v.test/c=2"),
    )
    assert merged([]) == Answer()


def test_cdi_devices_are_named_in_a_field_and_in_annotations() -> None:
    answer = Answer(
        cdi_devices=("v/n=1", "v/n=0"),
        annotations={"cdi.k8s.io/b": "v/n=2", "cdi.k8s.io/a": "v/n=0,v/n=3", "vendor.test/x": "v/n=9"},
    )
    assert cdi_names(answer) == ("v/n=1", "v/n=0", "v/n=3", "v/n=2")
    assert cdi_names(Answer()) == ()
