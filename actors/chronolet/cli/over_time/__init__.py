"""`chronolet history`: devices, images and the node over time."""
