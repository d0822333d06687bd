"""Messages that name the cause and the remedy, where others would send a user astray."""

import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import des, trace
from pmsim.api import load_scenario
from pmsim.errors import ConfigError
from pmsim.kinds import find_kind, intervals
from pmsim.overrides import with_overrides
from pmsim.points import points_of
from pmsim.units import Quantity, parse

SMALL = pmsim.Scenario(kind="latency", platform="tum-6212u", parameters={"region_size": "64 KiB"})
MACHINES = ["tum-6212u", "ucsd-8260"]


@pytest.mark.parametrize("jobs", ["2", True, 1.5])
def test_a_number_of_processes_that_is_none(jobs: Any) -> None:
    with pytest.raises(ConfigError, match=r"^jobs: .* is not a whole number; choose at least 1$"):
        pmsim.run(SMALL, jobs=jobs)


def test_a_folder_that_is_no_path() -> None:
    with pytest.raises(ConfigError, match=r"^folder: 3 is not a path; give a text"):
        pmsim.run(SMALL, jobs=1).save(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.timeout(-1),
        lambda env: env.timeout("-1 ns"),
        lambda env: env.schedule(env.event(), delay=-1),
    ],
)
def test_a_time_that_has_been(call: Callable[[des.Environment], Any]) -> None:
    with pytest.raises(ConfigError, match="a time is "):
        call(des.Environment())


def test_platforms_of_a_sweep_need_no_other_one() -> None:
    scenario = pmsim.Scenario(kind="latency", sweep={"platform": MACHINES})
    assert scenario.platform == MACHINES[0]
    assert scenario == pmsim.Scenario(kind="latency", platform=MACHINES[0], sweep={"platform": MACHINES})
    with pytest.raises(ConfigError, match="platform: missing; add it"):
        pmsim.Scenario(kind="latency", sweep={"threads": [1, 2]})


def test_several_platforms_are_an_axis() -> None:
    swept = with_overrides(SMALL, [f"platform={MACHINES}"])
    assert swept.axes()[0] == {"platform": MACHINES}
    with pytest.raises(ConfigError, match=r"^platform: several machines are an axis; write sweep\.platform = "):
        pmsim.Scenario(kind="latency", platform=MACHINES)


@pytest.mark.parametrize("mode", ["cross", "zip"])
def test_a_value_of_the_platform_is_set_on_every_machine_of_a_sweep(mode: str) -> None:
    scenario = pmsim.Scenario(kind="latency", sweep={"platform": MACHINES, "mode": mode})
    changed = with_overrides(scenario, ["platform.pmem.dimms=2"])
    points = points_of(changed)
    assert [point.platform.value("pmem", "dimms") for point in points] == [2, 2]
    assert len({point.platform.hash for point in points}) == 2


def test_pmem_without_modules_is_told_by_its_cause() -> None:
    with pytest.raises(ConfigError, match=r"memory: platform .* has no pmem, as its pmem\.dimms is 0; give it"):
        pmsim.simulate_point("latency", {"base": "tum-6212u", "pmem": {"dimms": 0}}, {"memory": "pmem"})


def test_minutes_and_hours_are_times() -> None:
    assert parse("1.5 min", Quantity.TIME) == 90 * 10**12
    assert parse("2 h", Quantity.TIME) == 7200 * 10**12


def test_batches_that_say_nothing_give_no_interval() -> None:
    assert all(math.isnan(end) for end in intervals.of_throughput([1, 1000], 2))
    low, high = intervals.of_throughput([1000, 2000, 3001], 3)
    assert low < 1e12 / 1000 < high


@pytest.mark.parametrize("size", [2, 2000])
def test_rows_of_an_engine_have_one_limit(size: int) -> None:
    given = {"engine": "main-memory", "workload": "ycsb-a", "page_size": 4096, "row_size": size}
    with pytest.raises(ConfigError, match=f"^row_size: {size} B; .* choose 8 to 1024 B$"):
        pmsim.simulate_point("oltp", "tum-6212u", given)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("scale", ["1/256", "1/16"])
@pytest.mark.parametrize("log_device", ["pmem", "ssd"])
def test_the_least_log_that_is_named_is_the_least_that_is_accepted(
    scale: str, threads: int, log_device: str
) -> None:
    machine = pmsim.load_platform({"base": "tum-6212u", "block_device": "nvme-p4510"})
    kind = find_kind("oltp")
    given = {"engine": "main-memory", "workload": "ycsb-c", "scale": scale, "threads": threads}
    given |= {"logs": "per-thread" if threads > 1 else "shared", "log_device": log_device}

    def check(size: int) -> None:
        kind.check(machine, kind.settled(machine, kind.parameters(given | {"log_size": size})))

    with pytest.raises(ConfigError, match=r"^log_size: ") as refused:
        check(2**20)
    least = parse(re.search(r"choose at least ([\d.]+ \w+)", str(refused.value))[1], Quantity.SIZE)  # type: ignore[index]
    check(least)
    with pytest.raises(ConfigError, match=r"^log_size: "):
        check(least * 49 // 50)


def test_too_few_recorded_requests_tell_how_many_are_needed(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("operation,key\nread,1\n")
    given = {"engine": "main-memory", "workload": "requests", "requests": str(tmp_path / "r.csv"), "scale": "1"}
    with pytest.raises(
        ConfigError, match=r"requests: 1 are too few for .*; record at least \d+ requests, or choose"
    ):
        pmsim.simulate_point("oltp", {"base": "tum-6212u", "block_device": "nvme-p4510"}, given)


def test_a_damaged_trace_is_named_once(tmp_path: Path) -> None:
    file = tmp_path / "a.trace"
    trace.record(load_scenario(SMALL), file)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        trace.export(file, tmp_path / "a.csv")
    assert str(refused.value).count(str(file)) == 1


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("groups.1.task=bogus", "parameters.groups.1.task"),  # as an only value of any other parameter
        ('groups.1.task=["scan", "bogus"]', "sweep.groups.1.task"),
        ('sweep.groups.2.task=["bogus", "scan"]', "sweep.groups.2.task"),
    ],
)
def test_a_wrong_choice_for_a_member_names_its_key_and_lists_the_choices_once(said: str, key: str) -> None:
    written = load_scenario("device/interference")
    with pytest.raises(ConfigError) as error:
        points_of(with_overrides(written, [said]), written)
    assert str(error.value).startswith(f"{key}: 'bogus' is not one of scan, ")
    assert str(error.value).endswith("; choose one of them")
    assert str(error.value).count("scan") == 1


def test_axes_that_are_zipped_are_set_one_after_the_other() -> None:
    zipped = pmsim.Scenario(
        kind="bandwidth",
        sweep={"mode": "zip", "threads": [1, 2, 4], "access_size": [64, 128, 256]},
        platform="tum-6212u",
    )
    shorter = ["sweep.threads=[1, 8]", "sweep.access_size=[64, 512]"]
    assert len(points_of(with_overrides(zipped, shorter), zipped)) == 2
    with pytest.raises(ConfigError, match=r"^--set sweep.threads: .*zip") as alone:
        with_overrides(zipped, shorter[:1])
    with pytest.raises(ConfigError) as still:
        with_overrides(zipped, [shorter[0], "title=Shorter"])
    assert str(still.value) == str(alone.value)


@pytest.mark.parametrize("name", ["seed", "seeds"])
def test_a_seed_is_said_once(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^--set {name}: --{name} says it, too; leave one$"):
        with_overrides(SMALL, [f"{name}=5"], **{name: 3})


def test_an_executor_that_is_a_class() -> None:
    with pytest.raises(
        ConfigError, match=r"^executor: ThreadPoolExecutor is a class .* ThreadPoolExecutor\(\)$"
    ):
        pmsim.run(SMALL, executor=ThreadPoolExecutor)  # type: ignore[arg-type]


def test_processes_beside_an_executor() -> None:
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(
            ConfigError, match=r"^jobs: 2 has no meaning with an executor, which has its own; remove"
        ),
    ):
        pmsim.run(SMALL, executor=pool, jobs=2)


@pytest.mark.parametrize(("key", "shown"), [(1, "1"), (None, "None"), (2.5, "2.5")])
def test_a_key_that_is_no_text_is_named_as_it_is(key: Any, shown: str) -> None:
    with pytest.raises(ConfigError) as error:
        pmsim.Scenario(kind="latency", platform="tum-6212u", parameters={key: 7})
    assert str(error.value) == f"parameters: the key {shown} is not text; write it in quotes"
