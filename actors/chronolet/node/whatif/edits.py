"""Applies a changed manifest, or changed thresholds, to the manifest that a pod had. Pure.

Input: `Wanted`, the recorded manifest. Output: the changed manifest, or a `ChangeError`. Next: `change`.

Only what acts on a container from outside can be changed: thresholds and grace periods of probes, their removal, and
the pod's restart policy. Anything else would need another container, of whose life the log knows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from chronolet.node.whatif.wanted import PROBES, THRESHOLDS, ChangeError, ProbeField, Wanted
from chronolet_schemas.podspec import Container, Pod, Probe
from chronolet_schemas.prober import ProbeName

ATTRIBUTES: Mapping[ProbeName, str] = {
    "Liveness": "liveness_probe",
    "Readiness": "readiness_probe",
    "Startup": "startup_probe",
}
_LATER = "; if the pod was changed later, choose --from after that"
"""What to do if only an earlier manifest in the range differs in other ways."""
_FIELDS: Mapping[ProbeName, str] = {probe: field for field, probe in PROBES.items()}


class Edits:
    """Changes manifests, and notes which of the wanted thresholds it has found."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._missing: dict[ProbeField, str] = {}
        self._seen: set[str] = set()
        self._found: set[ProbeField] = set()

    def manifest(self, manifest: Pod) -> Pod:
        """Return the manifest with the change. Raises ChangeError if it asks for what the log cannot tell."""
        self._seen.add(manifest.key)
        given = self._wanted.manifests.get(manifest.key)
        if given is not None:
            return _as_given(manifest, given)
        mine = {field: value for field, value in self._wanted.thresholds.items() if field.pod == manifest.key}
        for field, value in mine.items():
            manifest = self._with_threshold(manifest, field, value)
        return manifest

    def expect_all_found(self) -> None:
        """Raise ChangeError if a pod, container or probe was in no manifest."""
        for pod in sorted(self._wanted.pods - self._seen):
            raise ChangeError(f"pod/{pod}: found no such pod between the two moments, expected one that ran then")
        for field, reason in self._missing.items():
            if field not in self._found:
                raise ChangeError(reason)

    def _with_threshold(self, manifest: Pod, field: ProbeField, value: int) -> Pod:
        where = f"pod/{field.pod}/{field.container}"
        names = [one.name for one in _containers(manifest)]
        if field.container not in names:
            self._missing[field] = f"{where}: found no such container, expected one of {', '.join(names)}"
            return manifest
        attribute = ATTRIBUTES[field.probe]

        def edited(one: Container) -> Container:
            known: Probe | None = getattr(one, attribute)
            if one.name != field.container or known is None:
                return one
            self._found.add(field)
            probe = replace(known, **{THRESHOLDS[field.field]: value})
            return replace(one, **{attribute: probe})

        self._missing[field] = f"{where}: found a container without {_FIELDS[field.probe]}, expected one that has it"
        return _with_containers(manifest, edited)


def _as_given(recorded: Pod, given: Pod) -> Pod:
    """Return the recorded manifest with the probes and the restart policy of another one."""
    for path, one, other in _differences(_neutral(recorded), _neutral(given), "spec"):
        raise ChangeError(
            f"pod/{recorded.key}: {path}: found {other!r:.80} instead of {one!r:.80}, but of another container the log "
            "knows nothing; expected a manifest with other thresholds, grace periods or removed probes, or another "
            f"restartPolicy{_LATER}"
        )
    probes = {one.name: one for one in _containers(given)}
    for one in _containers(recorded):
        for name, attribute in ATTRIBUTES.items():
            _expect_same_probe(
                f"pod/{recorded.key}/{one.name}.{_FIELDS[name]}",
                getattr(one, attribute),
                getattr(probes[one.name], attribute),
            )

    def edited(one: Container) -> Container:
        mine = {attribute: getattr(probes[one.name], attribute) for attribute in ATTRIBUTES.values()}
        return replace(one, **mine)

    changed = _with_containers(recorded, edited)
    return replace(changed, spec=replace(changed.spec, restart_policy=given.spec.restart_policy))


def _expect_same_probe(where: str, known: Probe | None, given: Probe | None) -> None:
    if given is None:
        return
    if known is None:
        raise ChangeError(f"{where}: found a new probe, but the log has no outcomes of it; expected none{_LATER}")
    same = {"failure_threshold": 0, "success_threshold": 0, "termination_grace_period_seconds": None}
    for path, one, other in _differences(replace(known, **same), replace(given, **same), where):
        raise ChangeError(
            f"{path}: found {other!r:.80} instead of {one!r:.80}, but the log has only the outcomes of the probes that "
            "ran; expected another failureThreshold, successThreshold or terminationGracePeriodSeconds"
            f"{_LATER}"
        )


def neutral(manifest: Pod) -> Pod:
    """Return the manifest without what acts on containers only from outside."""
    return replace(manifest, spec=_neutral(manifest))


def _neutral(manifest: Pod) -> Any:
    without = _with_containers(manifest, lambda one: replace(one, **dict.fromkeys(ATTRIBUTES.values())))
    return replace(without.spec, restart_policy="Always")


def _containers(manifest: Pod) -> Iterator[Container]:
    yield from manifest.spec.init_containers
    yield from manifest.spec.containers


def _with_containers(manifest: Pod, edited: Any) -> Pod:
    spec = manifest.spec
    return replace(
        manifest,
        spec=replace(
            spec,
            containers=tuple(map(edited, spec.containers)),
            init_containers=tuple(map(edited, spec.init_containers)),
        ),
    )


def _differences(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield each field that differs, with both values."""
    if one == other:
        return
    fields = getattr(type(one), "__struct_fields__", ()) if type(one) is type(other) else ()
    if fields:
        for name, shown in zip(fields, type(one).__struct_encode_fields__, strict=True):
            yield from _differences(getattr(one, name), getattr(other, name), f"{path}.{shown}")
    elif isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        for number, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from _differences(mine, theirs, f"{path}[{getattr(mine, 'name', number)}]")
    else:
        yield path, one, other
