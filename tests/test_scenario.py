"""Scenarios: file and object are the same thing; points are what the sweep says."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsim import ConfigError, Scenario, run, scenario_names, sweep
from pmsim.kinds import KINDS
from pmsim.overrides import with_overrides
from pmsim.points import points_of
from pmsim.resolve import resolved_scenario
from pmsim.shipped import find_scenario

RANDOM_WRITES = """
kind = "bandwidth"
name = "random-writes"
platform = "tum-6212u"
[parameters]
memory = "pmem"
operation = "ntstore"
pattern = "random"
[sweep]
threads = [1, 2, 4]
access_size = [64, 256]
"""


def scenario(**changes: Any) -> Scenario:
    return Scenario(**{"kind": "bandwidth", "platform": "tum-6212u", **changes})


def test_the_documented_form_gives_the_cross_product_with_the_last_axis_turning_fastest() -> None:
    points = points_of(Scenario.from_toml(RANDOM_WRITES))
    swept = [(point.columns["threads"], point.columns["access_size"]) for point in points]
    assert swept == [(1, 64), (1, 256), (2, 64), (2, 256), (4, 64), (4, 256)]
    assert {point.columns["operation"] for point in points} == {"ntstore"}
    assert {point.columns["dimms"] for point in points} == {6}


def test_a_file_may_come_from_windows(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_bytes(b"\xef\xbb\xbf" + RANDOM_WRITES.lstrip().replace("\n", "\r\n").encode())
    assert Scenario.from_file(file) == Scenario.from_toml(RANDOM_WRITES)


def test_the_path_of_a_file_is_no_text() -> None:
    with pytest.raises(ConfigError) as refused:
        Scenario.from_toml("my/s.toml")
    assert str(refused.value) == (
        "text: 'my/s.toml' looks like the path of a file, and this takes its text; "
        "use Scenario.from_file(path), or pmsim.run(path)"
    )


@pytest.mark.parametrize("name", scenario_names())
def test_a_shipped_scenario_survives_the_way_to_text_and_back(name: str) -> None:
    shipped = Scenario.from_file(find_scenario(name))
    assert Scenario.from_toml(shipped.to_toml()) == shipped


@pytest.mark.parametrize("name", scenario_names())
def test_a_resolved_scenario_has_the_same_points(name: str) -> None:
    shipped = Scenario.from_file(find_scenario(name))
    points = points_of(shipped)
    again = points_of(Scenario.from_toml(resolved_scenario(shipped, points).to_toml()))
    assert [point.configuration for point in again] == [point.configuration for point in points]


@given(
    st.fixed_dictionaries(
        {
            "name": st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True),
            "title": st.text(max_size=30),
            "description": st.text(max_size=60),
            "seed": st.integers(0, 2**63 - 1),
            "parameters": st.fixed_dictionaries(
                {"memory": st.sampled_from(["dram", "pmem"]), "region_size": st.sampled_from([2**30, "4 GiB"])}
            ),
            "sweep": st.dictionaries(
                st.sampled_from(["threads", "access_size"]),
                st.lists(st.sampled_from([64, 128, 256]), min_size=1, max_size=3, unique=True),
            ),
        }
    )
)
def test_any_scenario_survives_the_way_to_text_and_back(table: dict[str, Any]) -> None:
    original = scenario(**table)
    assert Scenario.from_toml(original.to_toml()) == original


def test_hexadecimal_decimal_and_binary_sizes_are_the_same_point() -> None:
    given = [0x1000, "0x1000", "4096", "4 KiB", "4.096 kB"]
    points = [points_of(scenario(parameters={"access_size": size}))[0] for size in given]
    assert {point.columns["access_size"] for point in points} == {4096}
    assert len({point.configuration for point in points}) == 1


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ({"from": 1, "to": 5, "steps": 3}, [1, 3, 5]),
        ({"from": 1, "to": 16, "steps": 5, "scale": "log"}, [1, 2, 4, 8, 16]),
    ],
)
def test_ranges_hit_their_ends_exactly(axis: dict[str, Any], expected: list[int]) -> None:
    points = points_of(scenario(sweep={"threads": axis}))
    assert [point.columns["threads"] for point in points] == expected


def test_a_range_may_have_units() -> None:
    axis = {"from": "64 B", "to": "4 KiB", "steps": 7, "scale": "log"}
    points = points_of(scenario(sweep={"access_size": axis}))
    assert [point.columns["access_size"] for point in points] == [64, 128, 256, 512, 1024, 2048, 4096]


def test_zip_pairs_the_axes() -> None:
    points = points_of(scenario(sweep={"mode": "zip", "threads": [1, 2], "access_size": [64, 128]}))
    assert [(point.columns["threads"], point.columns["access_size"]) for point in points] == [(1, 64), (2, 128)]


def test_long_lists_are_not_compared_value_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    class Counted(int):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    monkeypatch.setattr(sweep, "_meant", lambda value, quantity: Counted(value))
    sweep.axes_of({"threads": [*range(1, 1001)]}, lambda axis: None)
    assert compared <= 1000


def test_a_parameter_called_mode_can_be_swept() -> None:
    swept = Scenario(kind="latency", platform="tum-6212u", sweep={"mode": ["app-direct", "memory-mode"]})
    points = points_of(swept)
    assert [point.columns["mode"] for point in points] == ["app-direct", "memory-mode"]
    assert [point.platform.value("controller", "memory_mode") for point in points] == [0, 1]


def test_machines_of_one_name_are_not_swept(tmp_path: Path) -> None:
    """Their rows would look alike, and their curves be one that goes back and forth."""
    own = tmp_path / "mine.toml"
    own.write_text('base = "tum-6212u"\nname = "ucsd-8260"\n')
    derived = {"base": "tum-6212u", "pmem": {"dimms": 2}}
    for name, platforms in (("tum-6212u", ["tum-6212u", derived]), ("ucsd-8260", [str(own), "ucsd-8260"])):
        with pytest.raises(ConfigError) as refused:
            points_of(scenario(sweep={"platform": platforms}))
        assert str(refused.value) == (
            f"sweep.platform: two machines are named '{name}'; give each a name: {{base = ..., name = \"...\"}}"
        )
    named = points_of(scenario(sweep={"platform": ["tum-6212u", {**derived, "name": "two modules"}]}))
    assert [point.columns["platform"] for point in named] == ["tum-6212u", "two modules"]
    zipped = {"mode": "zip", "platform": ["tum-6212u", "tum-6212u", "ucsd-8260"], "threads": [1, 2, 1]}
    assert len(points_of(scenario(sweep=zipped))) == 3


def test_platform_parameters_and_platforms_can_be_swept() -> None:
    axes = {"platform": ["tum-6212u", "ucsd-8260"], "platform.pmem.media_read_latency": ["300 ns", "500 ns"]}
    points = points_of(scenario(sweep=axes))
    assert [point.columns["platform"] for point in points] == ["tum-6212u"] * 2 + ["ucsd-8260"] * 2
    assert [point.columns["platform.pmem.media_read_latency_ns"] for point in points] == [300.0, 500.0] * 2
    assert [point.platform.value("pmem", "media_read_latency") for point in points] == [300_000, 500_000] * 2


def test_nested_tables_are_dotted_axes() -> None:
    text = 'kind = "mixed"\nplatform = "tum-6212u"\n[sweep]\ngroups.2.threads = [1, 5]\n'
    points = points_of(Scenario.from_toml(text))
    assert [point.columns["groups.2.threads"] for point in points] == [1, 5]
    assert {point.columns["groups.1.threads"] for point in points} == {14}


def test_one_module_has_its_share_of_the_capacity() -> None:
    whole, one = points_of(scenario(sweep={"dimms": ["all", 1]}))
    assert one.platform.value("pmem", "capacity") * 6 == whole.platform.value("pmem", "capacity")
    # A value of the machine changes itself alone.
    (alone,) = points_of(scenario(sweep={"platform.pmem.dimms": [1]}))
    assert alone.platform.value("pmem", "capacity") == whole.platform.value("pmem", "capacity")


def test_points_have_different_seeds_that_follow_from_the_scenarios_seed() -> None:
    first, second = points_of(scenario(sweep={"threads": [1, 2]}))
    again, _ = points_of(scenario(sweep={"threads": [1, 2]}))
    other, _ = points_of(scenario(sweep={"threads": [1, 2]}, seed=1))
    assert first.seed == again.seed
    assert len({first.seed, second.seed, other.seed}) == 3


def test_machines_share_random_numbers_and_a_default_may_be_written_out() -> None:
    base = scenario()
    here, there = points_of(base)[0], points_of(scenario(platform="ucsd-8260"))[0]
    assert here.content != there.content
    assert here.seed == there.seed
    default = here.parameters.model_dump()["pattern"]
    written, other = points_of(scenario(sweep={"pattern": [default, "sequential"]}))
    assert written.seed == here.seed != other.seed


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (["threads=8"], {"parameters": {"threads": 8}}),
        (["operation=store+clwb"], {"parameters": {"operation": "store+clwb"}}),
        (["region_size=4 GiB"], {"parameters": {"region_size": "4 GiB"}}),
        (["prefetcher=false"], {"parameters": {"prefetcher": False}}),
        (["threads=[1, 2]"], {"sweep": {"threads": [1, 2]}}),
        (["sweep.threads=[1, 2]"], {"sweep": {"threads": [1, 2]}}),
        (["platform=ucsd-8260"], {"platform": "ucsd-8260"}),
        (
            ["platform.pmem.media_read_latency=300 ns"],
            {"platform": {"base": "tum-6212u", "pmem": {"media_read_latency": "300 ns"}}},
        ),
        (["seed=7"], {"seed": 7}),
    ],
)
def test_set_changes_what_it_names(changes: list[str], expected: dict[str, Any]) -> None:
    assert with_overrides(scenario(), changes) == scenario(**expected)


def test_a_set_value_replaces_an_axis() -> None:
    changed = with_overrides(scenario(sweep={"threads": [1, 2]}), ["threads=4"])
    assert [point.columns["threads"] for point in points_of(changed)] == [4]


def test_every_parameter_of_every_kind_says_what_it_means() -> None:
    silent = [
        f"{kind.name}.{name}"
        for kind in KINDS.values()
        for name, field in kind.parameter_model.model_fields.items()
        if not field.description
    ]
    assert silent == []


def test_a_derived_platform_says_where_its_values_come_from() -> None:
    derived = {"base": "tum-6212u", "pmem": {"media_read_latency": "300 ns"}}
    platform = points_of(scenario(platform=derived))[0].platform
    changed = [row for row in platform.rows() if row.origin == "scenario"]
    assert [(row.section, row.name, row.value) for row in changed] == [("pmem", "media_read_latency", "300 ns")]


def test_an_object_is_checked_like_a_file() -> None:
    with pytest.raises(ConfigError, match="did you mean 'threads'"):
        scenario(parameters={"thread": 1})


def test_a_platform_file_of_ones_own_may_inherit(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ntitle = "Mine"\nkind = "machine"\nbase = "tum-6212u"\nblock_device = "nvme-p4510"\n'
        '[core]\ncores = { value = 12, source = "counted", origin = "assumed" }\n'
    )
    platform = points_of(scenario(platform=str(path)))[0].platform
    assert (platform.value("core", "cores"), platform.value("block", "capacity")) == (12, 2 * 10**12)


def test_a_sweep_over_ssds_names_them() -> None:
    scenario = Scenario(
        kind="block",
        platform={"base": "tum-6212u", "dram": {"capacity": "64 GiB"}},
        sweep={"platform.block_device": ["nvme-p4510", "hdd-7200"], "threads": [1, 4]},
    )
    fast, _, slow, _ = points_of(scenario)
    assert [point.columns["platform.block_device"] for point in (fast, slow)] == ["nvme-p4510", "hdd-7200"]
    assert fast.platform.value("block", "read_latency") < slow.platform.value("block", "read_latency")
    result = run(scenario, jobs=1)
    assert [trace.name for trace in result.figure().data] == ["nvme-p4510", "hdd-7200"]


@pytest.mark.parametrize("values", [["nvme-p4511"], [1], {"from": 1, "to": 2, "steps": 2}])
def test_a_sweep_over_what_is_no_ssd_is_refused(values: Any) -> None:
    with pytest.raises(ConfigError, match=r"platform\.block_device: ") as refused:
        points_of(Scenario(kind="block", platform="tum-6212u", sweep={"platform.block_device": values}))
    assert ";" in str(refused.value)
