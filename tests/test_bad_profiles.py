"""Whatever is wrong with a profile: one line with place and remedy, and exit status 2."""

from collections.abc import Callable
from pathlib import Path

import pytest

PROFILE = 'name = "p"\ntitle = "t"\nkind = "machine"\nlatency_definition = "d"\n'
#: Content of a file, and what the one line must say: where, and what to do.
PROFILES: dict[str, tuple[str, str, str]] = {
    "incomplete profile": (PROFILE, "p.toml: core.cores: missing", "or a base"),
    "profile without a title": ('name = "p"\n', "p.toml: title: missing", "add title"),
    "profile with an unknown base": (
        PROFILE + 'base = "tum"\n',
        "p.toml: base: unknown platform",
        "'tum-6212u'",
    ),
    "profile value without a source": (
        PROFILE + 'base = "tum-6212u"\n[core]\ncores = { value = 1, origin = "paper" }\n',
        "p.toml: core.cores: source is missing",
        "write cores = ",
    ),
    "profile value with an unknown origin": (
        PROFILE + 'base = "tum-6212u"\n[core]\ncores = { value = 1, source = "s", origin = "guess" }\n',
        "p.toml: core.cores.origin: unknown origin 'guess'",
        "datasheet",
    ),
    "profile of a drive without its parameters": (
        'name = "p"\ntitle = "t"\nkind = "block-device"\n',
        "p.toml: block.capacity: missing",
        "give it a value, source and origin",
    ),
    "profile of an unknown kind": (
        PROFILE.replace("machine", "server") + 'base = "tum-6212u"\n',
        "p.toml: kind: unknown kind 'server'",
        "known: machine, block-device",
    ),
    "profile of a machine on a drive as its base": (
        'name = "p"\ntitle = "t"\nbase = "nvme-p4510"\n[pmem]\n'
        'dimms = { value = 1, source = "s", origin = "paper" }\n',
        "p.toml: pmem: is of machines",
        "choose a machine as its base",
    ),
    "profile of a drive with a drive": (
        'name = "p"\ntitle = "t"\nbase = "nvme-p4510"\nblock_device = "nvme-p5500"\n',
        "p.toml: block_device: is of machines",
        "remove it",
    ),
    "bare profile value": (
        PROFILE + 'base = "tum-6212u"\n[core]\ncores = 1\n',
        "p.toml: core.cores: has no source",
        "write cores = ",
    ),
}


@pytest.mark.parametrize("name", PROFILES)
def test_a_bad_profile(name: str, working_folder: Path, complaint: Callable[..., str]) -> None:
    content, place, remedy = PROFILES[name]
    (working_folder / "p.toml").write_text(content)
    line = complaint("platform", "show", "p.toml")
    assert place in line
    assert remedy in line


@pytest.mark.parametrize("value", ["{}", "{ dimms = 1 }", "3"])
def test_an_unknown_section_of_a_derived_platform(
    value: str, working_folder: Path, complaint: Callable[..., str]
) -> None:
    scenario = f'kind = "bandwidth"\nplatform = {{ base = "tum-6212u", pmen = {value} }}\n'
    (working_folder / "s.toml").write_text(scenario)
    assert "platform.pmen: unknown key; did you mean 'pmem'?" in complaint("run", "s.toml", "--dry-run")
