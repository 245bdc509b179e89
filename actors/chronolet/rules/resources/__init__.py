"""Resource quantities, requests and limits, QoS classes, and the cgroup values that follow from them."""
