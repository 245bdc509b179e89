"""A resource and its device plugin: registration, options, lists, end. Pure, except `registrar`. Entry: `lifecycle`."""
