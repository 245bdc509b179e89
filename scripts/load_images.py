"""Imports the local images into Docker; called by `scripts/images` and `scripts/run` with the venv's Python.

Input: the Docker host (default: DOCKER_HOST). Output: one line for each image. An existing image is not imported again
unless --force is given, because an import always creates a new image and leaves the old one without a name.
"""

import argparse
import os

from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.docker_runtime.runtime import DEFAULT_HOST
from chronolet.adapters.images.busybox import ALL, load


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/images", description="Make the local images from busybox.")
    parser.add_argument("--host", metavar="unix:///PATH", help="the Docker Engine; default: DOCKER_HOST")
    parser.add_argument("--force", action="store_true", help="import images even if they exist")
    options = parser.parse_args()
    runtime = DockerRuntime(options.host or os.environ.get("DOCKER_HOST") or DEFAULT_HOST)
    wanted = [image for image in ALL if options.force or runtime.image(image.reference) is None]
    load(runtime, wanted)
    for image in ALL:
        print(f"{image.reference}: {'made' if image in wanted else 'is there'}")


if __name__ == "__main__":
    main()
