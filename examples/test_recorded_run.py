"""A test of a recorded history: pod web was killed by its liveness probe and kept its device; pod db got it afterwards.

`run.jsonl` is what `chronolet log -o json` printed. Run it with pytest where chronolet is installed.
"""

from chronolet_schemas import devices, pod

GPU = "vendor.test/gpu"


def test_the_device_stays_with_its_pod_across_a_restart(history):
    past = history("run.jsonl")
    starts = [one for one in past.events(pod.ContainerStarted) if one.event.pod == "default/web"]
    for restarts, start in enumerate(starts):
        then = past.at(start.position)
        [device] = then.devices
        assert (device["resource"], device["pod"], device["health"]) == (GPU, "web", "Healthy")
        assert then.pod("web")["status"]["containerStatuses"][0]["restartCount"] == restarts
    assert len(starts) == 2


def test_the_device_goes_to_another_pod_only_when_it_is_free(history):
    past = history("run.jsonl")
    [freed] = past.events(devices.DevicesFreed)
    owners = [past.at(f"#{freed.position.n + step}").devices[0].get("pod") for step in (-1, 0)]
    assert owners == ["web", None]
    assert past.at("-0s").devices[0]["pod"] == "db"
