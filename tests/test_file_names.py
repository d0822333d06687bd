"""Relative paths in files are meant from the folder of the file that has them, wherever pmsim is run."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import pmsim
from pmsim import Scenario, load_platform
from pmsim.errors import ConfigError
from pmsim.overrides import with_overrides
from pmsim.points import points_of
from pmsim.validation.suite_files import load_suite

VALUE = '{{ value = {}, source = "assumed: for this test", origin = "assumed" }}'
DRIVE = f'base = "nvme-p4510"\n[block]\nread_latency = {VALUE.format(chr(34) + "20 us" + chr(34))}\n'
BOX = f'base = "tum-6212u"\nblock_device = "my-ssd.toml"\n[core]\ncores = {VALUE.format(8)}\n'
#: A machine that has an SSD of its own already.
WITH_DRIVE = 'kind = "block"\nplatform = { base = "tum-6212u", block_device = "nvme-p5500" }\n'
ON_DRIVES = 'kind = "block"\nplatform = "tum-6212u"\n[sweep]\n"platform.block_device" = '
PRICES = "".join(f'[{tier}]\nusd_per_gb = 1\nyear = 2026\nsource = "s"\n' for tier in ("dram", "pmem", "ssd"))


@pytest.fixture
def folder(working_folder: Path) -> Path:
    """Two profiles in a folder below the working directory."""
    folder = working_folder / "mine"
    folder.mkdir()
    (folder / "my-ssd.toml").write_text(DRIVE)
    (folder / "my-box.toml").write_text(BOX)
    (folder / "prices.toml").write_text(PRICES)
    (folder / "requests.csv").write_text("operation,key,seconds\nread,1,0\nread,2,1e-05\nread,1,0.25\n")
    return folder


def read_latency(name: str | Path) -> int:
    return load_platform(name).value("block", "read_latency")


def test_profiles_name_others_from_their_folder(folder: Path) -> None:
    assert read_latency("mine/my-box.toml") == read_latency(folder / "my-box.toml") == 20_000_000
    (folder.parent / "next.toml").write_text('base = "mine/my-box.toml"\ntitle = "t"\n')
    assert load_platform("next.toml").value("core", "cores") == 8
    assert read_latency("next.toml") == 20_000_000
    (folder / "up.toml").write_text('base = "../next.toml"\n')
    assert load_platform("mine/up.toml").name == "up"
    (folder / "round.toml").write_text('base = "./round.toml"\n')
    with pytest.raises(
        ConfigError, match=r"^mine/round\.toml: base: mine/round\.toml: base: .* its own ancestor"
    ):
        load_platform("mine/round.toml")


@pytest.mark.parametrize("platform", ['"my-box.toml"', '{ base = "tum-6212u", block_device = "my-ssd.toml" }'])
def test_a_scenario_names_profiles_from_its_folder(folder: Path, platform: str) -> None:
    (folder / "s.toml").write_text(f'kind = "block"\nplatform = {platform}\n')
    (point,) = points_of(Scenario.from_file("mine/s.toml"))
    assert point.platform.value("block", "read_latency") == 20_000_000


@pytest.mark.parametrize(
    "text",
    [
        'kind = "block"\n[sweep]\nplatform = ["my-box.toml", { base = "my-box.toml", name = "b" }]\n',
        ON_DRIVES + '["my-ssd.toml", "nvme-p5500"]\n',
        WITH_DRIVE + '[vary]\nplatform = ["my-box.toml"]\n',
        WITH_DRIVE + '[vary]\n"platform.block_device" = ["my-ssd.toml"]\n',
        WITH_DRIVE + '[[variant]]\nlabel = "v"\nset = { "platform.block_device" = "my-ssd.toml" }\n',
        'kind = "system"\nplatform = "my-box.toml"\n[parameters]\nstudy = "recorded"\n'
        'service = "engine"\nrows = 100\nrecording = "requests.csv"\nprices = "prices.toml"\n',
    ],
)
def test_points_and_their_seeds_are_those_from_within(
    folder: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "s.toml").write_text(text)

    def configurations(file: str | Path) -> list[str]:
        return [point.configuration for point in points_of(Scenario.from_file(file))]

    outside = configurations("mine/s.toml")
    monkeypatch.chdir(folder)
    assert configurations("s.toml") == outside
    monkeypatch.chdir("/")
    assert configurations(folder / "s.toml") == outside


def test_the_resolved_scenario_runs_from_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "s.toml").write_text(
        ON_DRIVES + '["my-ssd.toml"]\n[plot]\nx = "threads"\ncolor = "platform.block_device"\n'
        'facet = "platform.block_device"\n[[plot.overlay]]\nlabel = "l"\ncitation = "c"\npoints = [[1, 2]]\n'
        'where = { "platform.block_device" = "my-ssd.toml" }\n'
        '[[plot.mark]]\nx = 1\nlabel = "m"\ncitation = "c"\nfacet = "my-ssd.toml"\n'
    )
    result = pmsim.run("mine/s.toml", out="out/s", jobs=1)
    assert list(result.frame["platform.block_device"]) == ["mine/my-ssd.toml"]
    again = pmsim.run("out/s/scenario.resolved.toml", out="out/s", jobs=1)
    assert again.provenance["points_from_cache"] == 1
    assert again.frame.equals(result.frame)
    monkeypatch.chdir(folder)
    elsewhere = pmsim.run("../out/s/scenario.resolved.toml", out="../out/s", jobs=1)
    assert elsewhere.provenance["points_from_cache"] == 1
    assert list(elsewhere.frame["configuration"]) == list(result.frame["configuration"])


def test_what_the_command_line_names_is_there(folder: Path) -> None:
    (folder / "s.toml").write_text('kind = "block"\nplatform = "my-box.toml"\n')
    changed = with_overrides(Scenario.from_file("mine/s.toml"), ["platform.block_device=mine/my-ssd.toml"])
    assert changed.platform == {"base": "mine/my-box.toml", "block_device": "mine/my-ssd.toml"}
    assert points_of(changed)


def test_claims_name_profiles_from_their_folder(folder: Path, one_claim: Callable[..., str]) -> None:
    series = '[series.s]\nplatform = "my-box.toml"\nkind = "latency"\nmetric = "latency_ns"\n'
    (folder / "claims.toml").write_text(one_claim(series))
    assert load_suite("mine/claims.toml").series["s"].platform == "mine/my-box.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "block"\nplatform = "a.toml"\n', "platform: mine/a.toml: no such file; check the path"),
        (ON_DRIVES + '["a.toml"]\n', "sweep.platform.block_device: mine/a.toml: no such file; check the path"),
        (
            ON_DRIVES.replace("tum-6212u", "a.toml") + '["my-ssd.toml"]\n',
            "platform: mine/a.toml: no such file; check the path",
        ),
        (
            ON_DRIVES.replace("tum-6212u", "my-box") + '["my-ssd.toml"]\n',
            "platform: unknown platform 'my-box'; known: .*; or give the path of a TOML file",
        ),
        (
            ON_DRIVES + '["qqqq"]\n',
            "sweep.platform.block_device: unknown block device 'qqqq'; known: none, ",
        ),
        (
            WITH_DRIVE + '[vary]\n"platform.block_device" = ["a.toml"]\n',
            "vary.platform.block_device: mine/a.toml: no such file; check the path",
        ),
        ('kind = "block"\n[sweep]\nplatform = ["a.toml"]\n', "sweep.platform: mine/a.toml: no such file"),
        (
            'kind = "block"\nplatform = { base = "tum-6212u", block_device = "a.toml" }\n',
            "platform.block_device: mine/a.toml: no such file",
        ),
    ],
)
def test_messages_say_where_and_which_path_was_tried(
    folder: Path, text: str, message: str, complaint: Callable[..., str]
) -> None:
    (folder / "s.toml").write_text(text)
    assert re.match(f"pmsim: mine/s.toml: {message}", complaint("run", "mine/s.toml"))


def test_names_that_are_unknown_may_be_meant_as_paths(folder: Path, complaint: Callable[..., str]) -> None:
    assert complaint("platform", "show", "my-box").endswith("; or give the path of a TOML file\n")
    (folder.parent / "my-box.toml").write_text(BOX)
    assert complaint("platform", "show", "my-box").endswith("did you mean 'my-box.toml'?\n")
    (folder / "a.toml").write_text('base = "my-box"\n')
    assert complaint("platform", "show", "mine/a.toml").endswith("did you mean 'my-box.toml'?\n")


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        ("", "machine"),
        ("[core]\n", "machine"),
        ("[block]\n", "block-device"),
        ('kind = "machine"\n[block]\n', "machine"),
        ('kind = "block-device"\n', "block-device"),
    ],
)
def test_only_what_may_be_a_base_is_offered(
    rest: str, kind: str, working_folder: Path, complaint: Callable[..., str]
) -> None:
    (working_folder / "p.toml").write_text(f'base = "qqqq"\n{rest}')
    known = ", ".join(pmsim.platform_names(kind))
    assert f"unknown platform 'qqqq'; known: {known}; or give the path" in complaint(
        "platform", "show", "p.toml"
    )
