"""What is installed is complete, agrees on its version, and finds its files."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import pmsim
from pmsim import _native, errors, resources

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(sys.executable).parent


def declared_version() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_every_place_that_states_the_version_states_the_same():
    changelog = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    citation = re.search(r"^version: (\S+)", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    stated = {
        "installed": metadata.version("pmsim"),
        "package": pmsim.__version__,
        "extension": _native.__version__,
        "changelog": changelog[1],
        "citation": citation[1],
    }
    assert stated == dict.fromkeys(stated, declared_version())


def test_the_package_says_that_it_is_typed():
    assert (Path(pmsim.__file__).parent / "py.typed").is_file()


def test_the_command_states_the_version():
    answer = subprocess.run([SCRIPTS / "pmsim", "--version"], capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert declared_version() in answer.stdout


def test_a_working_tree_reads_its_own_scenarios_and_claims():
    assert resources.scenarios_dir() == ROOT / "scenarios"
    assert resources.validation_dir() == ROOT / "validation"


def test_an_installed_package_reads_the_folders_it_carries(tmp_path, monkeypatch):
    installed = tmp_path / "pmsim"
    (installed / "_data" / "scenarios").mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", installed)
    assert resources.scenarios_dir() == installed / "_data" / "scenarios"
    with pytest.raises(errors.ConfigError, match="folder 'validation' of pmsim is missing"):
        resources.validation_dir()


def test_a_wheel_carries_every_scenario_and_claim(tmp_path):
    """Installs what a wheel would get from the build, without the compiled core."""
    cmake = shutil.which("cmake", path=SCRIPTS) or shutil.which("cmake")
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    configure = [cmake, "-S", ROOT / "native", "-B", build, "-DSKBUILD_STATE=wheel", "-DPMSIM_BINDINGS=OFF"]
    subprocess.run(configure, check=True, capture_output=True)
    install = [cmake, "--install", build, "--component", "python", "--prefix", prefix]
    subprocess.run(install, check=True, capture_output=True)

    for folder in ("scenarios", "validation"):
        expected = {path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*.toml")}
        carried = prefix / "pmsim" / "_data" / folder
        assert expected
        assert {path.relative_to(carried) for path in carried.rglob("*.toml")} == expected


def test_whatever_claims_and_calibration_cite_can_be_cited() -> None:
    """The titles of the publications behind the claims, and of the calibrated platforms."""
    folder = ROOT / "validation" / "claims"
    cited = re.findall(
        r'^citation = "[^:]*: ([^,:]*)', "".join(p.read_text() for p in folder.rglob("*.toml")), re.MULTILINE
    )
    listed = re.findall(r'^    title: "([^"]*)"', (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    readable = (ROOT / "README.md").read_text().casefold().replace("\n  ", " ")
    assert cited
    for title in {title.casefold() for title in cited}:
        assert [known for known in listed if known.casefold().startswith(title)], title
        assert title in readable, title


@pytest.mark.parametrize("started", ["pmsim.cli", "pmsim"])
def test_a_command_and_a_worker_start_without_what_draws_and_tabulates(started: str) -> None:
    """Frames and figures take as long to import as all the rest; only a result needs them."""
    code = f"import sys, {started}; print(*{{'pandas', 'plotly', 'pyarrow'}} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == []
