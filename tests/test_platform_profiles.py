"""Do the shipped platform profiles say what the publications say, completely and within range?"""

import pickle
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import _native, profiles
from pmsim.calibrate_profile import profile_text
from pmsim.errors import ConfigError
from pmsim.points import points_of

PLATFORMS = Path(pmsim.__file__).parent / "data" / "platforms"
NAMES = sorted(path.stem for path in PLATFORMS.glob("*.toml"))
ORIGINS = {"datasheet", "paper", "measured", "fitted", "assumed"}
# One parameter, one line: calibration rewrites values in place.
PARAMETER_LINE = re.compile(r'^\w+ = \{ value = .+, source = ".+", origin = "\w+" \}$')

NS, US, MS = 1_000, 1_000_000, 1_000_000_000
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MHZ = 1_000_000


def profile(name: str) -> dict[str, Any]:
    """The profile as its file writes it."""
    return tomllib.loads((PLATFORMS / f"{name}.toml").read_text(encoding="utf-8"))


def texts(name: str) -> dict[str, Any]:
    """What it says, with that of its base where it lists only what differs."""
    content = profile(name)
    return texts(content["base"]) | content if "base" in content else content


def parameters(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Every parameter of a profile by (section, name), those of its base included."""
    content = profile(name)
    inherited = parameters(content["base"]) if "base" in content else {}
    own = {
        (section, key): value
        for section, table in content.items()
        if isinstance(table, dict)
        for key, value in table.items()
    }
    return inherited | own


def native(name: str) -> dict[str, dict[str, int]]:
    return pmsim.load_platform(name).native()


MACHINES = [name for name in NAMES if texts(name)["kind"] == "machine"]
BLOCK_DEVICES = [name for name in NAMES if texts(name)["kind"] == "block-device"]


def test_all_promised_profiles_are_shipped() -> None:
    assert set(MACHINES) >= {
        "tum-6212u",
        "ucsd-8260",
        "perma-a256",
        "perma-a128",
        "ilmenau-5215",
        "sep-e5-4620v2",
        "tarantool-sep",
        "pmfs-e5-2670",
        "spr-cxl",
    }
    assert set(BLOCK_DEVICES) >= {"nvme-p4510", "optane-p4800x", "sata-s3700", "hdd-7200", "hymem-ssd"}


@pytest.mark.parametrize("name", NAMES)
def test_profile_is_named_as_its_file_and_defines_its_latencies(name: str) -> None:
    loaded = profiles.load_profile(name)
    assert loaded.name == name
    assert loaded.title.strip()
    for key in ("latency_definition", "notes"):
        assert texts(name)[key].strip(), key


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_states_value_source_and_origin(name: str) -> None:
    for (section, key), parameter in parameters(name).items():
        assert set(parameter) == {"value", "source", "origin"}, f"{section}.{key}"
        assert parameter["origin"] in ORIGINS, f"{section}.{key}"
        assert len(parameter["source"].strip()) >= 10, f"{section}.{key}"


@pytest.mark.parametrize("name", NAMES)
def test_a_fitted_value_says_to_what_and_an_assumed_one_never_claims_a_fit(name: str) -> None:
    for (section, key), parameter in parameters(name).items():
        source = parameter["source"]
        if parameter["origin"] == "fitted":
            assert re.search(r"fitted to .+ \(see docs/calibration\.md\)|^as [\w.-]+", source), (
                f"{section}.{key}"
            )
        else:
            assert "fitted" not in source, f"{section}.{key}"


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_stands_on_one_line(name: str) -> None:
    lines = (PLATFORMS / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    matching = sum(bool(PARAMETER_LINE.match(line)) for line in lines)
    own = sum(len(table) for table in profile(name).values() if isinstance(table, dict))
    assert matching == own


@pytest.mark.parametrize("name", NAMES)
def test_profile_has_exactly_the_parameters_of_its_kind(name: str) -> None:
    kind = texts(name)["kind"]
    expected = {
        (field["section"], field["name"])
        for field in _native.fields()
        if (field["section"] == "block") == (kind == "block-device")
    }
    assert set(parameters(name)) == expected


@pytest.mark.parametrize("name", MACHINES)
def test_machine_loads_and_every_value_is_in_range(name: str) -> None:
    values = native(name)
    _native.validate_platform(values)
    for field in _native.fields():
        value = values[field["section"]][field["name"]]
        assert isinstance(value, int)
        assert field["minimum"] <= value <= field["maximum"], f"{field['section']}.{field['name']}"


@pytest.mark.parametrize("name", MACHINES)
def test_block_device_of_a_machine_is_a_block_device_profile(name: str) -> None:
    device = profile(name).get("block_device")
    assert device is None or device in BLOCK_DEVICES


@pytest.mark.parametrize("device", BLOCK_DEVICES)
def test_every_block_device_fits_a_machine_and_is_in_range(device: str) -> None:
    values = pmsim.load_platform({"base": "spr-cxl", "block_device": device}).native()
    _native.validate_platform(values)
    assert values["block"]["capacity"] > 0


def test_machine_without_block_device_has_none() -> None:
    assert native("ucsd-8260")["block"]["capacity"] == 0


def test_perma_a128_differs_from_perma_a256_in_its_modules_only() -> None:
    a128, a256 = native("perma-a128"), native("perma-a256")
    assert {section for section in a256 if a128[section] != a256[section]} == {"pmem"}


def test_perma_a128_has_the_modules_of_tum_6212u_and_the_channels_of_perma_a256() -> None:
    a128, a256, tum = (native(name)["pmem"] for name in ("perma-a128", "perma-a256", "tum-6212u"))
    host = {"dimms", "interleave", "block_size", "bus_read", "bus_write", "reads_per_write", "reread_delay"}
    assert {key: a128[key] for key in host} == {key: a256[key] for key in host}
    assert {key: a128[key] for key in a128.keys() - host} == {key: tum[key] for key in tum.keys() - host}


# What the publications print about each machine.
PUBLISHED = [
    ("tum-6212u", "core", "cores", 24),
    ("tum-6212u", "core", "threads_per_core", 2),
    ("tum-6212u", "core", "flush_keeps_line", 0),
    ("tum-6212u", "l2", "size", MIB),
    ("tum-6212u", "llc", "size", 35_750 * MIB // 1000),
    ("tum-6212u", "dram", "capacity", 192 * GIB),
    ("tum-6212u", "controller", "channels", 6),
    ("tum-6212u", "pmem", "dimms", 6),
    ("tum-6212u", "pmem", "block_size", 256),
    ("ucsd-8260", "core", "cores", 24),
    ("ucsd-8260", "core", "threads_per_core", 1),
    ("ucsd-8260", "prefetcher", "enabled", 0),
    ("ucsd-8260", "llc", "size", 33 * MIB),
    ("ucsd-8260", "dram", "capacity", 192 * GIB),
    ("ucsd-8260", "pmem", "dimms", 6),
    ("ucsd-8260", "pmem", "interleave", 4 * KIB),
    ("ucsd-8260", "pmem", "write_buffer_blocks", 64),
    ("perma-a256", "core", "threads_per_core", 2),
    ("perma-a256", "prefetcher", "enabled", 1),
    ("perma-a256", "tlb", "dram_page_size", 2 * MIB),  # of PMem it is not stated
    ("perma-a256", "pmem", "dimms", 6),
    ("ilmenau-5215", "core", "cores", 10),
    ("ilmenau-5215", "core", "threads_per_core", 2),
    ("ilmenau-5215", "l1", "size", 32 * KIB),
    ("ilmenau-5215", "l2", "size", MIB),
    ("ilmenau-5215", "llc", "size", 13_750 * MIB // 1000),
    ("ilmenau-5215", "pmem", "dimms", 6),
    ("ilmenau-5215", "dram", "capacity", 192 * GIB),
    ("sep-e5-4620v2", "core", "cores", 8),
    ("sep-e5-4620v2", "core", "frequency", 2600 * MHZ),
    ("sep-e5-4620v2", "core", "flush_keeps_line", 1),
    ("sep-e5-4620v2", "llc", "size", 20 * MIB),
    ("sep-e5-4620v2", "dram", "capacity", 32 * GIB),
    ("sep-e5-4620v2", "pmem", "block_size", 64),
    ("sep-e5-4620v2", "pmem", "wear_stall_writes", 0),
    ("tarantool-sep", "core", "cores", 8),
    ("tarantool-sep", "dram", "capacity", 64 * GIB),
    ("tarantool-sep", "pmem", "capacity", 384 * GIB),
    ("pmfs-e5-2670", "core", "threads_per_core", 1),
    ("pmfs-e5-2670", "core", "frequency", 2600 * MHZ),
    ("pmfs-e5-2670", "l2", "size", 256 * KIB),
    ("pmfs-e5-2670", "l2", "ways", 8),
    ("pmfs-e5-2670", "llc", "size", 20 * MIB),
    ("pmfs-e5-2670", "llc", "ways", 16),
    ("pmfs-e5-2670", "controller", "channels", 4),
    ("pmfs-e5-2670", "dram", "capacity", 32 * GIB),
    ("pmfs-e5-2670", "pmem", "capacity", 224 * GIB),
    ("pmfs-e5-2670", "block", "read_bandwidth", 500_000_000),
    ("pmfs-e5-2670", "block", "write_bandwidth", 460_000_000),
]


@pytest.mark.parametrize(("name", "section", "key", "expected"), PUBLISHED)
def test_value_is_the_published_one(name: str, section: str, key: str, expected: int) -> None:
    assert native(name)[section][key] == expected


def dram_read(values: dict[str, dict[str, int]]) -> int:
    """Idle read of an unopened row, without page walk, as the sum of its parts."""
    dram = values["dram"]
    return values["core"]["shared_read_latency"] + dram["row_hit_latency"] + dram["row_miss_penalty"]


def pmem_read(values: dict[str, dict[str, int]]) -> int:
    """Idle read from the medium of the second tier, without page walk, as the sum of its parts."""
    pmem = values["pmem"]
    device = pmem["buffer_latency"] + pmem["media_read_latency"] + pmem["translation_miss_latency"]
    return values["core"]["shared_read_latency"] + device


@pytest.mark.parametrize(
    ("name", "dram", "pmem"),
    [
        ("sep-e5-4620v2", 85 * NS, 500 * NS),
        ("tarantool-sep", 85 * NS, 4 * 85 * NS),
        ("spr-cxl", 98 * NS, 247 * NS),
    ],
)
def test_parts_add_up_to_the_published_idle_latencies(name: str, dram: int, pmem: int) -> None:
    values = native(name)
    assert dram_read(values) == dram
    assert pmem_read(values) == pmem


def test_pmfs_machine_reads_its_nvm_as_its_dram() -> None:
    values = native("pmfs-e5-2670")
    assert pmem_read(values) == dram_read(values)
    assert values["pmem"]["bus_read"] == values["dram"]["read_burst"]


@pytest.mark.parametrize("name", ["sep-e5-4620v2", "tarantool-sep"])
def test_emulation_delays_writes_as_reads(name: str) -> None:
    values = native(name)
    assert values["pmem"]["write_latency"] == pmem_read(values) - dram_read(values)


@pytest.mark.parametrize("name", ["tum-6212u", "ucsd-8260", "perma-a256", "perma-a128", "ilmenau-5215"])
def test_modules_acknowledge_what_their_queue_holds(name: str) -> None:
    assert native(name)["pmem"]["write_latency"] == 0


@pytest.mark.parametrize(("media_read_latency", "total"), [("115 ns", 165 * NS), ("1750 ns", 1800 * NS)])
def test_emulated_read_latency_is_set_by_one_parameter(media_read_latency: str, total: int) -> None:
    derived = {"base": "sep-e5-4620v2", "pmem": {"media_read_latency": media_read_latency}}
    assert pmem_read(pmsim.load_platform(derived).native()) == total


def peak(transfer_time_ps: int, servers: int) -> float:
    """Bytes per second of `servers` that each move 64 bytes in `transfer_time_ps`."""
    return 64 / (transfer_time_ps * 1e-12) * servers


def test_emulation_gives_pm_a_quarter_of_the_dram_bandwidth() -> None:
    values = native("tarantool-sep")
    dram = peak(values["dram"]["read_burst"], values["controller"]["channels"])
    pmem = peak(values["pmem"]["media_read_service"], values["pmem"]["dimms"])
    assert dram == pytest.approx(38e9, rel=0.005)
    assert pmem == pytest.approx(9.5e9, rel=0.005)
    assert values["pmem"]["media_write_service"] == values["pmem"]["media_read_service"]


def test_pmfs_channels_deliver_the_published_bandwidth() -> None:
    values = native("pmfs-e5-2670")
    assert peak(values["dram"]["read_burst"], values["controller"]["channels"]) == pytest.approx(
        51.5e9, rel=0.005
    )


def test_expander_delivers_the_published_read_and_mixed_bandwidth() -> None:
    pmem = native("spr-cxl")["pmem"]
    assert pmem["own_path"]
    assert peak(pmem["bus_read"], 1) == pytest.approx(48e9, rel=0.01)
    assert peak(pmem["bus_write"], 1) == pytest.approx(47e9, rel=0.01)
    assert peak(pmem["media_read_service"], 1) == pytest.approx(54.1e9, rel=0.01)
    assert pmem["media_write_service"] == pmem["media_read_service"]


def test_an_expander_is_read_and_written_as_fast_as_its_link_allows() -> None:
    """Streams at random had been five times as slow: each cost the reads of page tables a turn of a bus."""

    def bandwidth(operation: str, pattern: str) -> float:
        given = {"memory": "pmem", "operation": operation, "pattern": pattern, "threads": 16}
        given |= {"access_size": 1024 if operation == "ntstore" else 256, "region_size": "8 GiB"}
        return float(pmsim.simulate_point("bandwidth", "spr-cxl", given)["bandwidth_gb_s"])

    for pattern in ("random", "sequential"):
        assert bandwidth("ntstore", pattern) == pytest.approx(47, rel=0.03)
        assert bandwidth("load", pattern) == pytest.approx(48, rel=0.03)
    # Each line is read for ownership and written back: 54 GB/s, half of it the user's.
    assert bandwidth("store+clwb", "sequential") == pytest.approx(27, rel=0.03)


RATED = [
    ("nvme-p4510", 637_000, 81_500),
    ("nvme-p5500", 1_000_000, 130_000),
    ("optane-p4800x", 550_000, 500_000),
    ("sata-s3700", 75_000, 36_000),
]


@pytest.mark.parametrize(("device", "reads_per_s", "writes_per_s"), RATED)
def test_device_reaches_its_rated_requests_and_no_more_than_a_tenth_above(
    device: str, reads_per_s: int, writes_per_s: int
) -> None:
    block = pmsim.load_platform({"base": "spr-cxl", "block_device": device}).native()["block"]
    blocks = -(-4096 // block["block_size"])
    reads = min(block["units"] / (block["read_latency"] * 1e-12) / blocks, block["read_bandwidth"] / 4096)
    writes = min(block["units"] / (block["program_latency"] * 1e-12) / blocks, block["write_bandwidth"] / 4096)
    assert 0.97 <= reads / reads_per_s <= 1.1
    assert 0.97 <= writes / writes_per_s <= 1.1


@pytest.mark.parametrize(("device", "read_ns"), [("nvme-p4510", 77_000), ("optane-p4800x", 8_900)])
def test_one_read_takes_what_its_source_says_transfer_and_software_included(device: str, read_ns: int) -> None:
    """And the copy to the caller, half a microsecond. The transfer had been left out."""
    given = {"operation": "read", "pattern": "random", "threads": 1}
    platform = {"base": "tum-6212u", "block_device": device}
    copy_ns = 4096 / 8
    found = pmsim.simulate_point("block", platform, given)["latency_ns"]
    assert found == pytest.approx(read_ns + copy_ns, rel=0.01)


def test_many_requests_reach_what_an_optane_ssd_is_rated_for() -> None:
    """Its blocks had been sectors, eight a request, each as long as the whole."""
    for operation, rated in (("read", 550_000), ("write", 500_000)):
        given = {"operation": operation, "pattern": "random", "threads": 16}
        platform = {"base": "tum-6212u", "block_device": "optane-p4800x"}
        found = pmsim.simulate_point("block", platform, given)["operations_per_s"]
        assert found == pytest.approx(rated, rel=0.1)


def test_disk_pays_seek_and_half_a_revolution() -> None:
    block = pmsim.load_platform({"base": "spr-cxl", "block_device": "hdd-7200"}).native()["block"]
    half_revolution = 60 * 1000 * MS // 7200 // 2
    assert block["rotation_latency"] == pytest.approx(half_revolution, rel=0.002)
    assert block["seek_latency"] == 8_200 * US


def test_documentation_describes_every_profile() -> None:
    documentation = Path(__file__).parents[1] / "docs" / "platforms.md"
    text = documentation.read_text(encoding="utf-8")
    assert [name for name in NAMES if f"`{name}`" not in text] == []


def test_a_profile_says_what_its_middle_tier_costs_and_whether_it_lasts(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('base = "spr-cxl"\nname = "own"\n')
    expander = pmsim.load_platform(str(own))
    for key, value in (("pmem_priced_as", "dram"), ("pmem_persistence", "volatile")):
        assert getattr(expander, key) == getattr(pickle.loads(pickle.dumps(expander)), key) == value
    own.write_text(profile_text(expander))
    again = pmsim.load_platform(str(own))
    assert (again.pmem_priced_as, again.pmem_persistence) == ("dram", "volatile")
    own.write_text('base = "spr-cxl"\nname = "own"\npmem_priced_as = "tape"\n')
    known = r"pmem_priced_as: 'tape' is none of its values; known: dram, pmem"
    with pytest.raises(ConfigError, match=rf"own\.toml: {known}"):
        pmsim.load_platform(str(own))
    with pytest.raises(ConfigError, match=rf"platform\.{known}"):
        pmsim.load_platform({"base": "spr-cxl", "pmem_priced_as": "tape"})
    battery = pmsim.load_platform({"base": "spr-cxl", "pmem_persistence": "durable"})
    assert battery.pmem_persistence == "durable"
    own.write_text('base = "nvme-p4510"\nname = "own"\npmem_priced_as = "dram"\n')
    with pytest.raises(ConfigError, match=r"own\.toml: pmem_priced_as: is of machines; remove it"):
        pmsim.load_platform({"base": "spr-cxl", "block_device": str(own)})


def test_a_profile_that_lists_only_what_differs_is_of_its_bases_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(PLATFORMS, tmp_path / "platforms")
    monkeypatch.setattr(profiles, "_FOLDER", folder)
    for name, base in (("drive", "nvme-p4510"), ("host", "tum-6212u")):
        (folder / f"{name}.toml").write_text(f'base = "{base}"\nname = "{name}"\ntitle = "mine"\n')
    assert set(profiles.platform_names("block-device")) == {*BLOCK_DEVICES, "drive"}
    assert set(profiles.platform_names()) == {*MACHINES, "host"}


def test_shipped_profiles_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep asks for them at every point."""
    machine = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    first = pmsim.load_platform(machine)

    def refuse(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(Path, "glob", refuse)
    monkeypatch.setattr(profiles, "read_toml", refuse)
    assert pmsim.load_platform(machine) == first


def test_a_profile_of_ones_own_is_named_as_its_file_not_as_its_base(tmp_path: Path) -> None:
    own, named = tmp_path / "mine.toml", tmp_path / "named.toml"
    own.write_text('base = "tum-6212u"\n[pmem]\ndimms = { value = 2, source = "s", origin = "measured" }\n')
    named.write_text('base = "tum-6212u"\nname = "other"\ntitle = "Another one"\n')
    base = pmsim.load_platform("tum-6212u")
    assert pmsim.load_platform(str(own)).name == "mine"
    assert pmsim.load_platform(str(own)).title == f"{base.title}, changed by mine.toml"
    assert pmsim.load_platform(str(named)).name == "other"
    assert pmsim.load_platform(str(named)).title == "Another one"
    # Beside its base in one sweep: tables and curves know a machine by its name.
    scenario = pmsim.Scenario(
        kind="latency", platform="tum-6212u", sweep={"platform": ["tum-6212u", str(own), str(named)]}
    )
    assert [point.platform.name for point in points_of(scenario)] == ["tum-6212u", "mine", "other"]
