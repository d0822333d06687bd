"""Finished points on disk, each in a file named by the hash of everything that it depends on."""

import hashlib
import json
import os
from pathlib import Path

from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.kinds.does_not_fit import DoesNotFit
from pmsim.points import Point
from pmsim.versions import native_build, native_version, package_version, sources_of

Metrics = dict[str, int | float]


class PointCache:
    """The folder of finished points.

    Parameters
    ----------
    folder : Path
        Created when needed.

    Raises
    ------
    ConfigError : the folder cannot be made or written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{folder}: cannot be made: {error.strerror}; choose another output directory with --out"
            ) from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError(f"{folder}: is not writable; choose another output directory with --out")

    def load(self, point: Point) -> Metrics | None:
        """Return the metrics of a finished point; None where it is unknown or its file is damaged."""
        try:
            entry = json.loads(self._path(point).read_text())
        except (OSError, ValueError, RecursionError):
            return None
        metrics = entry.get("metrics") if isinstance(entry, dict) else None
        if not isinstance(metrics, dict) or entry.get("sha256") != _checksum(metrics):
            return None
        if metrics.get("fits") != 0:
            return metrics
        # Versions before this one did not keep the reason: it is asked for again.
        reason = entry.get("reason")
        return DoesNotFit(metrics, reason) if isinstance(reason, str) else None

    def store(self, point: Point, metrics: Metrics) -> None:
        """Keep a finished point; a crash in the middle leaves no half file."""
        path = self._path(point)
        entry = {
            "kind": point.kind,
            "columns": dict(point.columns),
            "seed": point.seed,
            "configuration": point.configuration,
            "pmsim": package_version(),
            "native": native_version(),
            "native_build": native_build(),
            "metrics": metrics,
            "sha256": _checksum(metrics),
        }
        if isinstance(metrics, DoesNotFit):
            entry["reason"] = metrics.reason
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            temporary.write_text(json.dumps(entry, indent=1))
            os.replace(temporary, path)
            self.state(point).unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{path}: cannot be written: {error.strerror}; delete it, or choose another folder with --out"
            ) from None

    def state(self, point: Point) -> Path:
        """Return the file in which a point that is not finished keeps its state (`Kind.run_from`)."""
        return self._path(point).with_suffix(".state")

    def _path(self, point: Point) -> Path:
        code = (package_version(), native_version(), native_build(), sources_of(type(find_kind(point.kind))))
        parts = (point.configuration, *code)
        return self._folder / (hashlib.sha256(":".join(parts).encode()).hexdigest() + ".json")


def _checksum(metrics: Metrics) -> str:
    # A number that was changed in the file would become a result.
    return hashlib.sha256(json.dumps(metrics).encode()).hexdigest()
