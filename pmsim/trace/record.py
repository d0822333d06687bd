"""Record the micro-operations of a point of a scenario."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pmsim import _native, arguments
from pmsim.api import load_scenario, origin_of
from pmsim.errors import ConfigError
from pmsim.host_room import check_room
from pmsim.kinds import find_kind
from pmsim.kinds.measurement import simulator
from pmsim.messages import shown
from pmsim.output_place import place_of
from pmsim.overrides import with_overrides
from pmsim.points import Point
from pmsim.runner import evaluate
from pmsim.scenario import Scenario
from pmsim.shipped import find_scenario
from pmsim.standing import phases
from pmsim.trace_file import TraceInfo, info
from pmsim.unused import checked_points
from pmsim.versions import native_version, package_version


def record(
    scenario: str | Path | Scenario,
    out: str | Path,
    *,
    point: int = 1,
    set: Mapping[str, Any] | Iterable[str] | None = None,
    seed: int | None = None,
) -> TraceInfo:
    """Run one point of a scenario and write its micro-operations to a file.

    A kind that simulates several times per point is recorded the first time: of "mixed", all groups
    together; of "log", "in-place", "operations", "persist" and "contention" the run back to back, which has
    their throughput and counters, not the one that has their latencies.

    Parameters
    ----------
    scenario : str, Path or Scenario
        As for `pmsim.run`.
    out : str or Path
        The file to write; an existing one is replaced when the recording is complete.
    point : int
        Number of the point, from 1, in the order of the rows.
    set, seed : optional
        As for `pmsim.run`.

    Raises
    ------
    ConfigError : the scenario or the point cannot be run, or the file cannot be written.
    """
    out = arguments.output("out", out)
    written = load_scenario(scenario)
    if not isinstance(scenario, Scenario):
        arguments.output("out", out, find_scenario(str(scenario)))
    resolved = with_overrides(written, {} if set is None else set, seed=seed)
    try:
        points = checked_points(resolved, written)
    except ConfigError as error:
        raise error.prefixed(origin_of(scenario)) from None
    if isinstance(point, bool) or not isinstance(point, int) or not 1 <= point <= len(points):
        raise ConfigError(f"point: {shown(point)} does not exist; choose 1 to {len(points)}")
    chosen = points[point - 1]
    if reason := find_kind(chosen.kind).unrecordable:
        raise ConfigError(f"kind '{chosen.kind}' cannot be recorded: {reason}")
    check_room([chosen])
    recorder = _Recorder(place_of(out), _provenance(resolved, point, chosen))
    token = simulator.set(recorder)
    try:
        evaluate(chosen)
    finally:
        simulator.reset(token)
    if not recorder.recorded:
        raise ConfigError(
            f"point: nothing was simulated of point {point}, its data do not fit; choose another one, or raise "
            "a capacity"
        )
    return info(out)


@dataclass
class _Recorder:
    """Stands in for the core's simulate(): the first simulation is recorded, further ones are only run."""

    path: Path
    provenance: dict[str, Any]
    done: bool = False
    recorded: bool = False

    def __call__(
        self,
        workload: str,
        platforms: list[dict[str, dict[str, int]]],
        parameters: dict[str, int | str],
        seed: int,
    ) -> list[dict[str, Any]]:
        if self.done:
            return _native.simulate(workload, platforms, parameters, seed, phases())
        self.done = True
        provenance = self.provenance | {"workload": workload, "workload_parameters": parameters, "seed": seed}
        text = json.dumps(provenance, sort_keys=True, separators=(",", ":"), default=_digest)
        result = _native.trace_record(self.path, workload, platforms, parameters, seed, text, phases())
        self.recorded = True
        return result


def _digest(content: bytes) -> str:
    """Name what is too long for a header: recorded requests."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _provenance(scenario: Scenario, number: int, point: Point) -> dict[str, Any]:
    """Everything that made the streams; no clock and no path, so that the same run gives the same file."""
    machine = point.platform
    return {
        "pmsim": package_version(),
        "core": native_version(),
        "scenario": scenario.to_toml(),
        "point": number,
        "axes": dict(point.axes),
        "platform": {"name": machine.name, "hash": machine.hash, "values": machine.native()},
    }
