"""All that plugins want a container to be started with, as one."""

from chronolet.rules.device_options import merged
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
