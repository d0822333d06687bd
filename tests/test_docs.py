"""The pages about the model name every parameter, fitted values are accounted for, and links lead somewhere."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import pmsim
from pmsim import _native
from pmsim.api import load_scenario
from pmsim.cli import main
from pmsim.fields import fields
from pmsim.points import points_of
from pmsim.search_space import SearchSpace

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "generate_parameter_docs.py"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def explained_in():
    spec = importlib.util.spec_from_file_location("generate_parameter_docs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.EXPLAINED_IN


def headings(page):
    """Anchors as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_table_of_parameters_is_that_of_the_core():
    check = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stderr


@pytest.mark.parametrize("section", fields())
def test_every_parameter_is_explained_on_the_page_of_its_section(section):
    text = (ROOT / "docs" / "model" / explained_in()[section]).read_text(encoding="utf-8")
    missing = [name for name in fields()[section] if not re.search(rf"`(\w+\.)?{name}`", text)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if not linked.exists() or (anchor and anchor not in headings(linked)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("name", ["ucsd-8260", "perma-a256", "tum-6212u"])
def test_every_fitted_value_is_traced_to_a_measurement(name):
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    chapter = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    fitted = [f"{row.section}.{row.name}" for row in pmsim.load_platform(name).rows() if row.origin == "fitted"]
    assert fitted
    assert [key for key in fitted if f"`{key}`" not in chapter] == []


def test_the_readme_leads_to_every_notebook() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    notebooks = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("notebooks/*.ipynb"))
    assert notebooks
    assert re.findall(r"\]\((notebooks/\S+)\)", text) == notebooks


def test_the_example_of_the_readme_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ((source, expected),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(source, "README.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == expected
    assert (tmp_path / "out/random-writes/report.html").exists()


def commands() -> list[str]:
    """What the pages tell a reader to type, in blocks of shell and between backticks."""
    found: dict[str, None] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
            lines = [line.partition(" #")[0].strip() for line in block.replace("\\\n", " ").splitlines()]
            found |= dict.fromkeys(line for line in lines if line.startswith("pmsim "))
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        found |= dict.fromkeys(" ".join(code.split()) for code in re.findall(r"`(pmsim [a-z][^`]*)`", prose))
    return list(found)


@pytest.mark.parametrize("command", commands())
def test_commands_of_the_pages_can_be_typed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command.translate(str.maketrans("[]|", "   ")))[1:]
    depth = 2 if words[0] in ("platform", "trace") and len(words) > 1 and words[1].islower() else 1
    assert main([*words[:depth], "--help"]) == 0
    known = capsys.readouterr().out
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert [option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", known)] == []
    name = words[1] if len(words) > 1 else ""
    if words[0] in ("run", "tune") and re.fullmatch(r"[a-z][\w/-]*", name):
        points = points_of(load_scenario(name))
        assert words[0] == "run" or SearchSpace.of(points).grid


def test_what_the_pages_name_is_there_once_pmsim_is_imported() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = sorted(set(re.findall(r"`(pmsim(?:\.[A-Za-z]\w*)+)", text)))
    assert "pmsim.tuning.tune" in names
    source = "import pmsim\n" + "\n".join(names)
    answer = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert answer.stderr == ""


def test_the_examples_of_running_one_test_run_one() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    ((file, word),) = re.findall(r"\.venv/bin/pytest (\S+) -k (\w+)", text)
    assert re.search(rf"^def test_\w*{word}", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ((suite,),) = [re.findall(r"--gtest_filter='(\w+)\.\*'", text)]
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "native" / "tests").glob("*.cpp"))
    assert any(f"TEST({suite}," in source for source in sources)


def test_every_log_algorithm_has_its_row() -> None:
    page = (ROOT / "docs" / "blocks" / "log.md").read_text(encoding="utf-8")
    table = page.partition("\n## The algorithms\n")[2].partition("\nLayouts: ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == set(_native.logs())


def test_the_claims_of_ones_own_that_the_page_shows_are_judged(tmp_path, capsys):
    text = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    suite = tmp_path / "mine.toml"
    suite.write_text(example)
    assert main(["validate", "--suite", str(suite)]) in (0, 1)
    assert re.search(r"2 claims: .*; 2 runs\.", capsys.readouterr().out)


def test_the_examples_of_memory_from_python_run():
    examples = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8").split("## From Python")[1]
    names: dict[str, object] = {}
    for source in re.findall(r"```python\n(.*?)```", examples, re.DOTALL):
        exec(compile(source, "memory.md", "exec"), names)
    assert "promise_holds" in names


def test_the_examples_of_a_prototype_print_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "prototype.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 3
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXXFLAGS", "-O0")  # compiling takes longer than running
    (header,) = re.findall(r"```cpp\n(.*?)```", text, re.DOTALL)
    (tmp_path / "checksum_log.hpp").write_text(header, encoding="utf-8")
    names: dict[str, object] = {"__name__": "example"}
    for source, expected in examples:
        exec(compile(source, "checksum_log.py", "exec"), names)
        assert capsys.readouterr().out == expected
