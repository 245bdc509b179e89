"""A resource and its device plugin, from registration to exit. Pure. Entry: `lifecycle`."""
