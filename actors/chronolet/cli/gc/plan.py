"""Predicts the next run of the collectors.

Input: the collectors' state from the log, and Docker's current objects, queried with read-only calls. Output: a
verdict on every object, according to the same rules that the collectors apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict, replace

from chronolet.cli.errors import Failure
from chronolet.cli.gc.run import camel_case
from chronolet.cli.get.images import size
from chronolet.cli.printing import ages, table
from chronolet.cli.printing.plain import dump
from chronolet.cli.printing.progress import progress
from chronolet.cli.session import Session, session
from chronolet.container_gc import decider as containers
from chronolet.container_gc import policy as container_policy
from chronolet.container_gc.inventory import Inventory as ContainerInventory
from chronolet.container_gc.planning import plan as container_plan
from chronolet.container_gc.planning.verdicts import Verdict
from chronolet.container_gc.state import State as ContainerState
from chronolet.image_gc import decider as images
from chronolet.image_gc import policy as image_policy
from chronolet.image_gc.inventory import Inventory as ImageInventory
from chronolet.image_gc.planning import outcome
from chronolet.image_gc.planning import plan as image_plan
from chronolet.image_gc.state import Run
from chronolet.image_gc.state import State as ImageState
from chronolet.node.settings.settings import Settings
from chronolet.ports.runtime.runtime import Runtime
from chronolet_schemas import container_gc, image_gc

Object = dict[str, Any]

_CONTAINER_FIELDS = {
    "minimum_container_ttl_duration": "min_age_milliseconds",
    "maximum_dead_containers_per_container": "max_per_container",
    "maximum_dead_containers": "max_containers",
}
_IMAGE_FIELDS = {
    "image_gc_high_threshold": "high_threshold_percent",
    "image_gc_low_threshold": "low_threshold_percent",
    "minimum_image_ttl_duration": "min_age_milliseconds",
    "image_maximum_gc_age": "max_age_milliseconds",
}


def show(
    settings: Settings, given: Mapping[str, Any], output: str | None, *, unused: bool, left_alone: bool = False
) -> None:
    """Print the plan of a run that would start now. Values in `given` override the agent's settings.

    `left_alone`: plan a run that removes only dead containers of a lost log, and no images.
    """
    with session(settings) as node:
        found = node.state("container_gc", "image_gc").states
        known: tuple[ContainerState, ImageState] = found["container_gc"]["node"], found["image_gc"]["node"]
        with progress("querying Docker"), closing(node.services.runtime(settings)) as runtime:
            plan = {
                "kind": "GarbageCollectionPlan",
                "node": settings.node,
                "at": ages.rfc3339(node.now()),
                **({} if left_alone else {"images": _images(node, known[1], given, runtime, unused=unused)}),
                "containers": _containers(node, known[0], given, runtime, left_alone=left_alone),
            }
    if output:
        click.echo(dump(plan, output))
    else:
        _print(plan)


def _policy(kind: str, known: Any, given: Mapping[str, Any], fields: Mapping[str, str]) -> Any:
    if known is None:
        raise Failure(f"the node's {kind} has not run yet: start an agent that hosts it (`chronolet run`)")
    return replace(known, **{fields[name]: value for name, value in given.items() if name in fields})


# -- containers ----------------------------------------------------------------------------------------------------


def _containers(
    node: Session, state: ContainerState, given: Mapping[str, Any], runtime: Runtime, *, left_alone: bool
) -> Object:
    policy: container_gc.Policy = _policy("container_gc", state.policy, given, _CONTAINER_FIELDS)
    if problem := container_policy.problem(policy):
        raise click.UsageError(f"{problem}.")
    logs = node.services.logs(Path(state.log_folder))
    scan = ContainerInventory(runtime, logs, state.node, policy, lambda: state.log_run).scan()
    stages = containers.planned(state, scan, node.now(), left_alone=left_alone)
    verdicts = [verdict for stage in stages for verdict in stage.verdicts]
    removed = [_container(one, runtime) for one in verdicts if one.remove]
    return {
        "policy": camel_case(asdict(policy)),
        "removed": removed,
        "freedBytes": sum(one["sizeBytes"] for one in removed),
        "kept": [_container(one) for one in verdicts if not one.remove],
        "errors": list(container_plan.errors(stages)),
    }


def _container(one: Verdict, runtime: Runtime | None = None) -> Object:
    written = runtime.written_bytes(one.id) if runtime and one.what in ("container", "sandbox") else 0
    sized = {"sizeBytes": written} if runtime else {}
    return {"what": one.what, "id": one.id, "name": one.name, "pod": one.pod, "uid": one.uid, "rule": one.rule} | sized


# -- images --------------------------------------------------------------------------------------------------------


def _images(node: Session, state: ImageState, given: Mapping[str, Any], runtime: Runtime, *, unused: bool) -> Object:
    policy = _image_policy(_policy("image_gc", state.policy, given, _IMAGE_FIELDS), given)
    if problem := image_policy.problem(policy):
        raise click.UsageError(f"{problem}.")
    with closing(node.services.images(node.settings)) as held:
        scan = ImageInventory(runtime, held, state.node, policy).scan(with_disk=True)
    operation: image_gc.Operation = "remove_unused" if unused else "collect"
    plan = images.planned(state, scan, operation, node.now())
    return {
        "policy": camel_case(asdict(policy)),
        "operation": operation,
        "capacityBytes": plan.disk.capacity_bytes,
        "availableBytes": plan.disk.available_bytes,
        "usagePercent": plan.usage_percent,
        "wantedBytes": plan.wanted_bytes,
        "freedBytes": sum(one.size_bytes for one in plan.going),
        "removed": [
            {"id": one.id, "name": one.name, "sizeBytes": one.size_bytes, "rule": one.reason} for one in plan.going
        ],
        "kept": [
            {"id": one.image.id, "name": image_plan.name_of(one.image), "sizeBytes": one.image.size_bytes}
            | {"rule": one.why, "usedBy": list(one.image.users)}
            for one in plan.staying
        ],
        "errors": [error for error in (_error(plan, policy),) if error],
    }


def _image_policy(policy: image_gc.Policy, given: Mapping[str, Any]) -> image_gc.Policy:
    """Return the policy with the overrides in `given`.

    If only the high threshold is given, lower the low threshold below it if necessary.
    """
    high, low = policy.high_threshold_percent, policy.low_threshold_percent
    if "image_gc_low_threshold" not in given and low >= high:
        usual = image_gc.Policy()
        apart = usual.high_threshold_percent - usual.low_threshold_percent
        policy = replace(policy, low_threshold_percent=max(high - apart, 0))
    return replace(policy, pinned=(*policy.pinned, *given.get("pinned_images", ())))


def _error(plan: image_plan.Plan, policy: image_gc.Policy) -> str:
    """Return the error that the run would report even if every removal succeeded; empty if there is none."""
    going = plan.going
    run = Run(
        number=0,
        operation="collect",
        trigger="request",
        at=0,
        wanted_bytes=plan.wanted_bytes,
        error=plan.error,
        freed_for_space_bytes=sum(one.size_bytes for one in going if one.reason == "space"),
    )
    return outcome.error(run, policy.max_age_milliseconds)


# -- text output --------------------------------------------------------------------------------------------------


def _print(plan: Object) -> None:
    images = plan.get("images")
    rows = [
        *_rows(images["removed"] if images else (), "remove", "image"),
        *_rows(plan["containers"]["removed"], "remove", ""),
        *_rows(images["kept"] if images else (), "keep", "image"),
        *_rows(plan["containers"]["kept"], "keep", ""),
    ]
    if rows:
        table.show(("ACTION", "OBJECT", "NAME", "SIZE", "RULE"), rows)
    for line in (*(_of_images(images) if images else ()), *_of_containers(plan["containers"])):
        click.echo(line)


def _rows(objects: Sequence[Object], action: str, what: str) -> Iterator[tuple[str, ...]]:
    for one in objects:
        yield (
            action,
            what or one["what"].replace("_", " "),
            one["name"],
            size(one["sizeBytes"]) if "sizeBytes" in one else "",
            one["rule"].replace("_", " "),
        )


def _of_images(plan: Object) -> Iterator[str]:
    if plan["capacityBytes"]:
        policy, full = plan["policy"], f"{plan['usagePercent']} % full (capacity {size(plan['capacityBytes'])})"
        bounds = f"at {policy['highThresholdPercent']} % and stops at {policy['lowThresholdPercent']} %"
        yield f"Docker's disk is {full}" + (
            f"; image collection starts {bounds}." if plan["operation"] == "collect" else "."
        )
    needed = "" if plan["wantedBytes"] is None else f" of the {size(plan['wantedBytes'])} needed"
    yield f"Images: {len(plan['removed'])} would be removed, freeing {size(plan['freedBytes'])}{needed}."
    yield from (f"The run would fail: {error}" for error in plan["errors"])


def _of_containers(plan: Object) -> Iterator[str]:
    yield f"Containers: {len(plan['removed'])} would be removed, freeing {size(plan['freedBytes'])}."
    yield from (f"The run would fail: {error}" for error in plan["errors"])
