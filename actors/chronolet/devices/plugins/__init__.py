"""A resource and its device plugin, from registration to exit. Pure, except `registrar`. Entry: `lifecycle`."""
