"""The whole log is lost: containers keep their devices in the new log, and no other pod gets them."""

from chronolet_schemas import devices
from chronolet_schemas import pod as pods
from tests.e2e.devices.device_node import plugin
from tests.e2e.node import Node, pod, shell
from tests.e2e.recovery.lost_log import wait_for_new_log
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import HANG_SECONDS

NAME = "adopted.test/thing"
REQUESTING_ONE = {**shell("app"), "resources": {"limits": {NAME: 1}}}


def test_containers_keep_their_devices_in_a_new_log(own_node: Node, redis_server: PrivateRedis) -> None:
    own_node.start()
    with plugin(own_node, NAME, "--devices", "2"):
        own_node.write("holder.yaml", pod("holder", REQUESTING_ONE))
        own_node.wait_until_running("holder")
        before = own_node.started_at("holder")
        had = (
            own_node.journal.wait_for_event(devices.DevicesAllocated, pod="default/holder").allocations()[NAME].devices
        )
        redis_server.client(timeout=HANG_SECONDS).flushall()
        own_node.write("later.yaml", pod("later"))  # the next write makes the agent notice the loss
        wait_for_new_log(own_node)
        adopted = own_node.journal.wait_for_event(devices.DevicesAdopted, pod="default/holder")
        assert adopted.devices == {NAME: had}
        again = own_node.journal.wait_for_event(devices.DevicesAllocated, pod="default/holder")
        assert again.allocations()[NAME].devices == had
        own_node.write("next.yaml", pod("next", REQUESTING_ONE))
        other = (
            own_node.journal.wait_for_event(devices.DevicesAllocated, pod="default/next").allocations()[NAME].devices
        )
        assert (len(other), set(other) & set(had)) == (1, set())
        own_node.wait_until_running("holder", "next", "later")
        assert own_node.started_at("holder") == before
        shown = own_node.chronolet("get", "devices", "--no-headers").out.splitlines()
        assert {(line.split()[1], line.split()[4]) for line in shown} == {
            (had[0], "default/holder"),
            (other[0], "default/next"),
        }
        # A restart of the container needs no new allocation: the plugin's answer is in the new log.
        own_node.kill_process("holder", "app")
        own_node.journal.wait_for_event(pods.ContainerStarted, pod="default/holder", container="app", attempt=1)
        own_node.wait_until_running("holder")
        assert "Traceback" not in own_node.log
