"""A resource and its device plugin: registration, options, lists, end. Pure. Entry: `lifecycle`."""
