"""Suites as files: reading one, or a folder of them that share one name space."""

import os
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pmsim.errors import ConfigError
from pmsim.file_names import with_files
from pmsim.kinds import KINDS
from pmsim.messages import described, key_of
from pmsim.relative import from_here
from pmsim.resources import validation_dir
from pmsim.toml_file import read_toml
from pmsim.validation.claims import Claim, Measure, Series, Source, Suite


def suites() -> list[str]:
    """Names of the suites that come with pmsim."""
    entries = (validation_dir() / "claims").iterdir()
    return sorted(path.stem for path in entries if path.is_dir() or path.suffix == ".toml")


def load_suite(name_or_path: str | Path) -> Suite:
    """Read and check a suite.

    Parameters
    ----------
    name_or_path : the name of a suite that comes with pmsim, or a path: a ``.toml`` file, or a folder of them.
        The files of a folder share one name space; each is complete in itself.

    Raises
    ------
    ConfigError : the file is missing, is not TOML, or a claim in it is incomplete; one line names the place.
    """
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return _load_file(path)
    if name_or_path == "":  # to pathlib the working directory
        raise ConfigError(f"suite: the empty text names nothing; known: {', '.join(suites()) or 'none'}")
    # A name means what comes with pmsim, also where the working directory has a folder of that name.
    if str(name_or_path) in suites():
        path = validation_dir() / "claims" / str(name_or_path)
        if not path.is_dir():
            return _load_file(path.with_suffix(".toml"))
    files = sorted(path.glob("*.toml")) if os.path.isdir(path) else []  # Path.is_dir fails for long names
    if not files:
        raise ConfigError(f"suite '{name_or_path}': unknown; known: {', '.join(suites()) or 'none'}")
    return _merged(path, [(file, _load_file(file)) for file in files])


def _load_file(path: Path) -> Suite:
    content = read_toml(path)
    try:
        suite = Suite.model_validate({"name": path.stem, **content})
    except ValidationError as error:
        raise ConfigError(f"{path}: {_first_problem(error, content)}") from error
    for name, series in suite.series.items():
        suite.series[name] = _with_files(series, path.parent)
    suite._files.update(dict.fromkeys([*suite.series, *(claim.id for claim in suite.claim)], path))
    return suite


def _with_files(series: Series, folder: Path) -> Series:
    """Return a series whose relative paths, which are meant from this folder, are those from here."""
    if series.kind not in KINDS:  # told when it is used
        return series
    given = {"platform": series.platform, "parameters": series.parameters, "sweep": series.sweep}
    model = KINDS[series.kind].parameter_model
    return series.model_copy(update=with_files(given, model, lambda file: from_here(folder, file)))


def _merged(folder: Path, parts: list[tuple[Path, Suite]]) -> Suite:
    """Join the suites of a folder; a source may be repeated word by word, other names belong to one file."""
    sources: dict[str, Source] = {}
    series: dict[str, Series] = {}
    measures: dict[str, Measure] = {}
    claims: dict[str, Claim] = {}
    for path, part in parts:
        for name, source in part.sources.items():
            if sources.setdefault(name, source) != source:
                raise ConfigError(f"{path}: source '{name}': another file of the suite cites it differently")
        by_id = {claim.id: claim for claim in part.claim}
        for what, known, new in (
            ("series", series, part.series),
            ("measure", measures, part.measures),
            ("claim", claims, by_id),
        ):
            if twice := sorted(known.keys() & new.keys()):
                raise ConfigError(
                    f"{path}: {what} '{twice[0]}': another file of the suite has it too; rename it"
                )
        series |= part.series
        measures |= part.measures
        claims |= by_id
    title = "; ".join(part.title for _, part in parts)
    merged = Suite(
        name=folder.name,
        title=title,
        sources=sources,
        series=series,
        measures=measures,
        claim=list(claims.values()),
    )
    for _, part in parts:
        merged._files.update(part._files)
    return merged


def _first_problem(error: ValidationError, content: dict[str, Any]) -> str:
    problems = error.errors()
    # A misspelt key is the cause of the key that is missing.
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    where = [str(part) for part in problem["loc"]]
    if len(where) > 1 and where[0] == "claim":
        claim = content["claim"][int(where[1])]
        name = claim.get("id", where[1]) if isinstance(claim, dict) else where[1]
        where = [f"claim '{name}'", key_of(dict(problem), depth=2)]
    message = " ".join(described(dict(problem), Suite).split())
    return ": ".join([part for part in (*where, message) if part])
