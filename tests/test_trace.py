"""Traces: a replay is the run again, a damaged file is refused, and the commands say what they did."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pmsim import Scenario, _native, load_platform, run, trace
from pmsim.cli import main
from pmsim.commands.trace import trace_app
from pmsim.errors import ConfigError
from pmsim.kinds import find_kind
from pmsim.points import points_of
from pmsim.runner import evaluate
from pmsim.trace.replay import replays

MIB = 2**20

SCENARIOS = [
    Scenario(
        kind="bandwidth",
        platform="tum-6212u",
        parameters={"operation": "ntstore", "threads": 3, "region_size": MIB},
        sweep={"access_size": [64, 256]},
    ),
    Scenario(
        kind="bandwidth",
        platform="tum-6212u",
        parameters={"operation": "store+clwb", "pattern": "sequential", "dimms": 1, "region_size": MIB},
        sweep={"threads": [1, 4]},
    ),
    Scenario(
        kind="persist",
        platform="perma-a256",
        parameters={"operation": "ntstore", "region_size": MIB},
        sweep={"access_size": [64, 512]},
    ),
    Scenario(
        kind="operations",
        platform="tum-6212u",
        parameters={"operations": "rp_512,rp_512,wp_64_cache_320", "region_size": MIB},
        sweep={"threads": [1, 2]},
    ),
]


def recorded(tmp_path: Path) -> Path:
    trace.record(SCENARIOS[0], tmp_path / "a.trace")
    return tmp_path / "a.trace"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.kind)
def test_a_replay_on_the_recorded_platform_is_the_recorded_run(scenario: Scenario, tmp_path: Path) -> None:
    expected = evaluate(points_of(scenario)[1])
    trace.record(scenario, tmp_path / "a.trace", point=2)
    replayed = trace.replay(tmp_path / "a.trace").counted()
    assert {name: expected[name] for name in replayed} == replayed


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (Scenario(kind="system", platform="tum-6212u"), "kind 'system' cannot be recorded"),
        (
            Scenario(
                kind="oltp",
                platform="sep-e5-4620v2",
                parameters={"engine": "nvm-direct", "pmem_capacity": "1 GiB", "scale": "1/64"},
            ),
            "point: nothing was simulated of point 1, its data do not fit",
        ),
    ],
    ids=lambda part: part.kind if isinstance(part, Scenario) else "",
)
def test_what_leaves_no_micro_operations_is_refused_and_an_older_trace_is_not_taken_for_it(
    scenario: Scenario, message: str, tmp_path: Path
) -> None:
    file = recorded(tmp_path)
    before = file.read_bytes()
    with pytest.raises(ConfigError, match=message):
        trace.record(scenario, file)
    assert file.read_bytes() == before


def _without(row: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def test_recording_does_not_change_the_run(tmp_path: Path) -> None:
    platform = load_platform("tum-6212u").native()
    parameters = {"memory": "pmem", "operation": "load", "pattern": "random", "region_size": MIB}
    alone = _native.simulate("latency", [platform], parameters, 7)
    assert _native.trace_record(tmp_path / "a", "latency", [platform], parameters, 7, "{}") == alone
    # A stream knows nothing about the data structures behind it, nor the parts that its run was to be cut into.
    unknown = {"facts", "batch_ends_ps", "batch_latencies", "batch_bytes"}
    (replayed,) = _native.trace_replay(tmp_path / "a", [platform], 0)
    assert replayed["batch_ends_ps"] == alone[0]["batch_ends_ps"][-1:]
    assert _without(replayed, unknown) == _without(alone[0], unknown)


def test_a_recording_notes_when_its_batches_end(tmp_path: Path) -> None:
    machine = load_platform({"base": "tum-6212u", "block_device": "nvme-p4510"})
    sizes = {"data_size": "1 MiB", "dram_capacity": "8 MiB", "pmem_capacity": "8 MiB", "log_size": "2 MiB"}
    given = {"engine": "main-memory", "workload": "ycsb-a", "ssd_capacity": "8 MiB", "scale": "1"}
    native = find_kind("oltp").prepared(machine, given | sizes).parameters.native()
    run = {"operations": 100, "warmup": 0, "batches": 4, "wear": 0, "check": 0, "breakdown": 0}
    parameters = native | run
    (alone,) = _native.simulate("oltp", [machine.native()], parameters, 7)
    assert len(alone["batch_ends_ps"]) == 4
    (recorded,) = _native.trace_record(tmp_path / "a", "oltp", [machine.native()], parameters, 7, "{}")
    assert recorded == alone


def test_a_replay_of_threads_that_share_no_latches_keeps_their_caches_apart_too(tmp_path: Path) -> None:
    # A log on an SSD that threads write in groups has no locked accesses.
    parameters = {
        "engine": "main-memory",
        "workload": "ycsb-a",
        "data_size": "1 MiB",
        "dram_capacity": "8 MiB",
        "pmem_capacity": "8 MiB",
        "ssd_capacity": "32 MiB",
        "log_size": "8 MiB",
        "threads": 4,
        "latches": "none",
        "commits": "group",
        "log_device": "ssd",
        "operations": 400,
        "warmup": 0,
    }
    platform = {"base": "tum-6212u", "block_device": "nvme-p4510"}
    scenario = Scenario(kind="oltp", platform=platform, parameters=parameters)
    expected = evaluate(points_of(scenario)[0])
    recorded = trace.record(scenario, tmp_path / "a.trace")
    assert recorded.operations_by_kind["block_commit"] > 0
    replayed = trace.replay(tmp_path / "a.trace").counted()
    assert {name: expected[name] for name in replayed} == replayed


def test_a_trace_can_be_timed_elsewhere(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    here = trace.replay(path)
    slower = {"base": "tum-6212u", "pmem": {"media_write_service": "2 us"}}
    elsewhere = trace.replay(path, slower)
    assert elsewhere.total.operations == here.total.operations
    assert elsewhere.total.elapsed_ps > 5 * here.total.elapsed_ps


def test_the_file_says_where_it_comes_from(tmp_path: Path) -> None:
    described = trace.record(SCENARIOS[0], tmp_path / "a.trace", point=2, seed=3)
    point = points_of(SCENARIOS[0].model_copy(update={"seed": 3}))[1]
    assert described == trace.info(tmp_path / "a.trace", verify=True)
    assert described.threads == 3
    assert (
        described.operations
        == sum(described.operations_by_kind.values())
        == sum(described.operations_by_thread)
    )
    assert described.extent_bytes["pmem"] <= MIB
    assert described.extent_bytes["dram"] == 0
    assert described.file_bytes == (tmp_path / "a.trace").stat().st_size
    made_from = described.provenance
    assert made_from["seed"] == point.seed
    assert made_from["axes"] == {"access_size": "256"}
    assert Scenario.from_toml(made_from["scenario"]).parameters == SCENARIOS[0].parameters
    assert trace.recorded_platform(described).hash == point.platform.hash == made_from["platform"]["hash"]


def test_the_same_run_gives_the_same_file(tmp_path: Path) -> None:
    trace.record(SCENARIOS[0], tmp_path / "a.trace")
    trace.record(SCENARIOS[0], tmp_path / "b.trace")
    assert (tmp_path / "a.trace").read_bytes() == (tmp_path / "b.trace").read_bytes()


def test_files_have_well_under_a_byte_per_operation_of_a_block_workload(tmp_path: Path) -> None:
    # Chunks of 256 bytes: one drawn address (about 2 bytes in 1 MiB) for four lines.
    assert trace.record(SCENARIOS[0], tmp_path / "a.trace", point=2).bytes_per_operation < 0.7


@pytest.mark.parametrize("kept", [0, 7, 60, 0.5, -1])
def test_a_truncated_trace_is_refused(kept: float, tmp_path: Path) -> None:
    path = recorded(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept) if isinstance(kept, float) else kept])
    for use in (trace.info, trace.replay):
        with pytest.raises(ConfigError, match="damaged or cut short"):
            use(path)


def test_a_damaged_chunk_is_found_by_verify_and_by_replay(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    trace.info(path)  # header and footer are intact
    with pytest.raises(ConfigError, match=r"checksum of a chunk differs.*record it again"):
        trace.info(path, verify=True)
    with pytest.raises(ConfigError, match="checksum of a chunk differs"):
        trace.replay(path)
    # A scenario is refused before it runs, not point by point.
    damaged = Scenario(kind="trace", platform="tum-6212u", parameters={"file": str(path)})
    with pytest.raises(ConfigError, match=r"parameters\.file: .*checksum of a chunk differs"):
        run(damaged, jobs=1)


def test_a_platform_that_is_too_small_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    platform = load_platform("tum-6212u")
    trace.record(SCENARIOS[0], path, set={"parameters.region_size": "1 GiB", "sweep.access_size": [64]})
    small = platform.with_values({"pmem": {"capacity": 2**29}}, source="test")
    with pytest.raises(ConfigError, match="the platform has 536870912; choose a larger platform"):
        trace.replay(path, small)
    none = platform.with_values({"pmem": {"dimms": 0}}, source="test")
    with pytest.raises(ConfigError, match="of pmem, the platform has 0; choose a larger platform"):
        trace.replay(path, none)
    few = platform.with_values({"core": {"cores": 1, "threads_per_core": 1}}, source="test")
    with pytest.raises(ConfigError) as refused:
        trace.replay(path, few)
    assert str(refused.value) == (
        f"trace {path}: has 3 threads, platform 'tum-6212u' has 1; choose a larger platform"
    )


def test_all_platforms_of_a_command_are_looked_at_before_the_first_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.trace"
    trace.record(SCENARIOS[0], path, set={"threads": 24})
    monkeypatch.setattr(_native, "trace_replay", lambda *_: pytest.fail("a replay has begun"))
    given = ["replay", str(path), "--platform", "tum-6212u", "--platform", "sep-e5-4620v2"]
    result = CliRunner().invoke(trace_app, given)
    assert str(result.exception) == (
        f"trace {path}: has 24 threads, platform 'sep-e5-4620v2' has 16; choose a larger platform"
    )


def test_the_commands_record_describe_and_replay(tmp_path: Path) -> None:
    scenario, path = tmp_path / "s.toml", tmp_path / "a.trace"
    scenario.write_text(SCENARIOS[0].to_toml())
    runner = CliRunner()
    result = runner.invoke(trace_app, ["record", str(scenario), "--point", "2", "--out", str(path)])
    assert result.exit_code == 0, result.output
    plain = runner.invoke(trace_app, ["info", str(path)])
    result = runner.invoke(trace_app, ["info", str(path), "--verify"])
    (verified,) = set(result.output.splitlines()) ^ set(plain.output.splitlines())
    assert re.match(f"verified .*every checksum.* {trace.info(path).operations:,} micro-operations", verified)
    assert "stream_store" in result.output
    # Those of `replay` are operations of the workload: a number that has another meaning has another name.
    assert f"micro-operations  {trace.info(path).operations:,}" in result.output
    assert "B per micro-operation" in result.output
    assert f"the first {trace.info(path).plan['untimed_operations']:,} are not timed" in result.output
    assert not re.search("^operations", result.output, re.MULTILINE)
    assert "tum-6212u" in result.output
    result = runner.invoke(
        trace_app, ["replay", str(path), "--platform", "tum-6212u", "--platform", "ucsd-8260"]
    )
    assert result.exit_code == 0, result.output
    head, *rows = result.output.splitlines()
    numbers = ["time [ms]", "operations", "GB/s", "latency [ns]", "p99 [ns]"]
    assert re.split(" {2,}", head) == ["platform", *numbers]
    assert [row.split()[0] for row in rows] == ["tum-6212u", "ucsd-8260"]


@pytest.mark.parametrize("threads", [1, 2])
def test_replays_on_several_platforms_are_those_on_each(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.trace"
    trace.record(SCENARIOS[3], path, point=threads)
    given = [
        "tum-6212u",
        {"base": "tum-6212u", "pmem": {"media_read_latency": "300 ns"}},
        "ucsd-8260",
        {"base": "tum-6212u", "prefetcher": {"enabled": False}},
        {"base": "tum-6212u", "pmem": {"dimms": 3, "capacity": "378 GiB"}},
    ]
    machines = [load_platform(each) for each in given]
    alone = [trace.replay(path, machine) for machine in machines]
    native, passes = _native.trace_replay, []

    def counted(path: Path, platforms: list[object], *more: object) -> object:
        passes.append(len(platforms))
        return native(path, platforms, *more)

    monkeypatch.setattr(_native, "trace_replay", counted)
    assert replays(path, machines) == alone
    # What several threads find in a cache that they share depends on their times, so these run one by one.
    assert sorted(passes) == ([1, 1, 3] if threads == 1 else [1] * 5)


def test_info_and_replay_name_what_the_scenario_had_changed_of_its_platform(tmp_path: Path) -> None:
    for scenario, expected in (
        (SCENARIOS[0], "tum-6212u"),
        (SCENARIOS[1], "tum-6212u with pmem.dimms = 1, pmem.capacity = 126 GiB"),
    ):
        trace.record(scenario, tmp_path / "a.trace")
        result = CliRunner().invoke(trace_app, ["info", str(tmp_path / "a.trace")])
        (line,) = (line for line in result.output.splitlines() if line.startswith("platform"))
        assert line.split(maxsplit=1)[1] == expected
        # Another result than on the platform of that name has another name.
        result = CliRunner().invoke(trace_app, ["replay", str(tmp_path / "a.trace")])
        assert result.output.splitlines()[1].startswith(f"{expected}  ")
        given = ["replay", str(tmp_path / "a.trace"), "--platform", "tum-6212u"]
        assert CliRunner().invoke(trace_app, given).output.splitlines()[1].startswith("tum-6212u  ")


def test_a_replay_elsewhere_names_what_the_scenario_had_changed_of_its_platform(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "a.trace")
    trace.record(SCENARIOS[1], file)
    (tmp_path / "same.toml").write_text(
        'base = "tum-6212u"\nname = "same"\ntitle = "t"\nkind = "machine"\n[pmem]\n'
        'dimms = { value = 1, source = "as recorded", origin = "paper" }\n'
        'capacity = { value = "126 GiB", source = "as recorded", origin = "paper" }\n'
    )
    same = str(tmp_path / "same.toml")
    for platforms, others in (
        ((), ""),
        ((same,), ""),
        (("tum-6212u",), "tum-6212u"),
        ((same, "tum-6212u", "ucsd-8260"), "tum-6212u, ucsd-8260"),
    ):
        given = [argument for name in platforms for argument in ("--platform", name)]
        assert main(["trace", "replay", file, *given]) == 0
        note = (
            f"pmsim: {file} was recorded on tum-6212u with pmem.dimms = 1, pmem.capacity = 126 GiB, "
            f"which is not so of {others}; leave --platform out to time it as it was recorded, or name a "
            "profile with these values\n"
        )
        assert capsys.readouterr().err == (note if others else "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "missing.trace"], "no such file"),
        (["info", "."], "not a regular file"),
        (["record", "SCENARIO", "--out", "."], "is a directory"),
        (["record", "SCENARIO", "--point", "3", "--out", "x"], "choose 1 to 2"),
        (["replay", "SCENARIO"], "not a pmsim trace"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SCENARIOS[0].to_toml())
    given = ["s.toml" if argument == "SCENARIO" else argument for argument in arguments]
    result = CliRunner().invoke(trace_app, given)
    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)


def test_a_trace_of_a_profile_of_ones_own_is_replayed_without_it(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    value = '{ value = "500 ns", source = "s", origin = "assumed" }'
    profile.write_text(
        f'name = "mine"\ntitle = "t"\nbase = "ucsd-8260"\n[pmem]\nmedia_read_latency = {value}\n'
    )
    scenario = Scenario(kind="latency", platform=str(profile))
    machine = load_platform(str(profile))
    file = tmp_path / "own.trace"
    trace.record(scenario, file)
    there = trace.replay(file, str(profile))
    profile.unlink()
    recorded = trace.recorded_platform(trace.info(file))
    assert (recorded.name, recorded.hash) == ("mine", machine.hash)
    assert trace.replay(file) == there
