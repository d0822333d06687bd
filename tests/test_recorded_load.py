"""Recorded requests under load: they come when they came, each once, and are refused in one line."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pmsim
from pmsim import _native, des
from pmsim.des import studies
from pmsim.errors import ConfigError
from pmsim.profiles import load_platform
from pmsim.requests import OPERATIONS, Requests, load_requests

MACHINE = {"base": "tum-6212u", "block_device": "nvme-p4510"}
ENGINES = [name for name in _native.engines() if name != "fptree"]
#: Little of everything, so that pages move between tiers; where everything fits, for engines without one below.
SMALL = {"rows": 2000, "row_size": 504, "dram_capacity": "256 KiB", "pmem_capacity": "512 KiB"}
ROOMY = {"dram_capacity": "32 MiB", "pmem_capacity": "64 MiB"}
BELOW = {"ssd_capacity": "64 MiB"}


def capacities(engine: str) -> dict[str, Any]:
    return SMALL | BELOW | ({} if engine in ("three-tier", "ssd-bm", "spitfire") else ROOMY)


@pytest.fixture(name="recording")
def _recording(tmp_path: Path) -> Path:
    """All kinds of requests of a few keys, at 10 us from each other on average."""
    random = np.random.default_rng(1)
    count = 1500
    scan = (operation := random.choice(OPERATIONS, count)) == "scan"
    frame = pd.DataFrame(
        {
            "operation": operation,
            "key": random.integers(0, 300, count),
            "rows": pd.array(np.where(scan, 7, None), dtype="Int64"),
            "seconds": np.cumsum(random.exponential(10e-6, count)).round(9),
        }
    )
    file = tmp_path / "recording.csv"
    frame.to_csv(file, index=False)
    return file


def study(recording: Path) -> dict[str, Any]:
    given = {"study": "recorded", "service": "engine", "engine": "three-tier", "workers": 2}
    return given | capacities("three-tier") | {"recording": str(recording)}


def point(recording: Path, **parameters: object) -> dict[str, Any]:
    return pmsim.simulate_point("system", MACHINE, study(recording) | parameters)


@pytest.mark.parametrize("engine", ENGINES)
def test_simpy_and_the_core_serve_a_recording_identically_when_it_came(engine: str, recording: Path) -> None:
    times = load_requests(recording).times
    assert times is not None
    tenant = des.Tenant("all", des.TraceDriven(times.tolist()), [des.Ask("recorded.request")], "1 s")

    def server() -> des.Server:
        given = {"engine": engine, "requests": str(recording)} | capacities(engine)
        return des.Server(des.Environment(), [("recorded", given)], platform=MACHINE, workers=3)

    native = des.NativeLoad(server(), [tenant], keep_log=True)
    native.run("1 ms")
    native.finish()
    through_simpy = des.Load(server(), [tenant], keep_log=True)
    through_simpy.env.run()
    assert through_simpy.log == native.log
    assert native.now == max(served.end for served in native.log)
    submitted = {served.request: served.submitted for served in native.log}
    assert [submitted[request] for request in range(len(times))] == times.tolist()
    assert native.summary()["in_system"] == 0


def test_what_comes_faster_waits_longer_and_everything_is_answered(recording: Path) -> None:
    slow, as_recorded, fast = (point(recording, speed_percent=percent) for percent in (1, 100, 10_000))
    assert slow["waited_ns"] < 0.1 * slow["latency_ns"]
    assert as_recorded["offered_per_s"] == pytest.approx(1e5, rel=0.1)
    assert fast["offered_per_s"] == pytest.approx(100 * as_recorded["offered_per_s"], rel=1e-3)
    assert fast["throughput_per_s"] < 0.5 * fast["offered_per_s"]
    assert slow["latency_p99_ns"] < as_recorded["latency_p99_ns"] < fast["latency_p99_ns"]
    assert slow["simulated_ops"] == pytest.approx(750, abs=2)  # the second half
    assert {found["in_system_at_end"] for found in (slow, as_recorded, fast)} == {0}
    assert [found["keeps_up"] for found in (slow, as_recorded, fast)] == [1, 0, 0]


def test_latencies_are_those_of_the_second_half_and_throughput_has_the_backlog_of_the_first(
    recording: Path,
) -> None:
    times = load_requests(recording).times
    assert times is not None
    part = ("recorded", {"engine": "three-tier", "requests": str(recording)} | capacities("three-tier"))
    server = des.Server(des.Environment(), [part], platform=MACHINE, workers=2, seed=0)
    tenant = des.Tenant("all", des.TraceDriven(times.tolist()), [des.Ask("recorded.request")], "1 s")
    load = des.NativeLoad(server, [tenant], keep_log=True)
    load.finish()
    half = len(times) // 2
    begin = int(times[half])
    assert sum(served.submitted < begin < served.end for served in load.log) > 50  # a backlog, answered later
    counted = [served for served in load.log if served.request >= half]
    found = pmsim.simulate_point("system", MACHINE, study(recording), seed=0)
    assert len(counted) == 750
    latencies_s = sum(served.end - served.submitted for served in counted) / 1e12
    elapsed_s = (load.now - begin) / 1e12
    assert found["latency_ns"] == pytest.approx(latencies_s / 750 * 1e9)
    # The backlog is served in the same time.
    answered = [served for served in load.log if served.end > begin]
    present_s = sum(served.end - max(begin, served.submitted) for served in answered) / 1e12
    assert found["simulated_ops"] == len(answered)
    assert found["throughput_per_s"] == pytest.approx(len(answered) / elapsed_s)
    assert found["mean_in_system"] == pytest.approx(present_s / elapsed_s)
    assert found["offered_per_s"] == pytest.approx(1e12 / np.diff(times[half:]).mean())
    assert found["throughput_per_s"] < found["offered_per_s"]


@pytest.mark.parametrize("gap", [1_000_000, 500_000, 100_000, 10_000])
def test_a_busy_machine_answers_as_many_as_it_can_however_fast_they_come(gap: int) -> None:
    """Requests of 1 us each for one worker."""
    count, service = 2000, 1_000_000
    setting = studies.Setting(
        load_platform("tum-6212u"), (des.ComputePart(),), 1, (des.Ask("compute.run", first=service),), 1
    )
    found = studies.recorded_load(setting, np.arange(count, dtype=np.int64) * gap)
    assert found["count"] * 1e12 / found["elapsed_ps"] == pytest.approx(1e6, rel=0.01)
    begin, last, end = count // 2 * gap, (count - 1) * gap, count * service
    waiting = [count - begin / service - (count - begin / gap), count - last / service, 0]
    mean = np.trapezoid(waiting, [begin, last, end]) / (end - begin)
    assert found["mean_in_system"] == pytest.approx(mean, rel=0.01, abs=1.01)


def test_more_workers_shorten_the_queue(recording: Path) -> None:
    one, four = (point(recording, speed_percent=200, workers=workers) for workers in (1, 4))
    assert four["waited_ns"] < one["waited_ns"]


@given(st.lists(st.integers(0, 8 * 10**18), min_size=1, max_size=20), st.integers(1, 10**6))
def test_another_speed_divides_times_exactly(times: list[int], speed: int) -> None:
    times = sorted(times)
    requests = Requests(b"", "", 0, 0, {}, np.array(times, dtype=np.int64))
    expected = [Fraction(100 * time, speed) for time in times]
    if expected[-1] > 100 * 86_400 * 10**12:
        with pytest.raises(ConfigError, match="choose at most 100"):
            requests.arrivals(speed)
    else:
        assert requests.arrivals(speed).tolist() == [int(time) for time in expected]


def test_changed_times_are_another_point(recording: Path, tmp_path: Path) -> None:
    scenario = pmsim.Scenario(kind="system", platform=MACHINE, parameters=study(recording))

    def configuration() -> str:
        frame = pmsim.run(scenario, jobs=1, out=tmp_path / "out", progress=False).frame
        return str(frame["configuration"].iloc[0])

    before = configuration()
    frame = pd.read_csv(recording, dtype={"rows": "Int64"})
    frame.assign(seconds=(frame["seconds"] + 1).round(9)).to_csv(recording, index=False)
    assert configuration() == before  # only what lies between them counts
    frame.assign(seconds=(2 * frame["seconds"]).round(9)).to_csv(recording, index=False)
    assert configuration() != before


PARQUET = {
    "nanoseconds of a calendar": pd.to_datetime(
        ["2026-11-24T10:00:00.999999999", "2026-11-24T10:00:01.000000001", "2026-11-24T10:00:03"],
        format="ISO8601",
    ),
    "milliseconds of a calendar": pd.to_datetime(
        ["2026-11-24T10:00:00.998", "2026-11-24T10:00:00.999", "2026-11-24T10:00:01"], format="ISO8601"
    ).astype("datetime64[ms]"),
    "whole numbers": np.array([7, 8, 20], dtype=np.uint64),
    "floats": [0.25, 0.5, 3.0],
    "decimals": [Decimal("0.000000000001"), Decimal("0.000000000002"), Decimal("3")],
    "texts": ["0.000000000001", "0.000000000002", "3"],
}
SINCE_FIRST = {
    "nanoseconds of a calendar": [0, 2_000, 2_000_000_001_000],
    "milliseconds of a calendar": [0, 10**9, 2 * 10**9],
    "whole numbers": [0, 10**12, 13 * 10**12],
    "floats": [0, 250 * 10**9, 2750 * 10**9],
    "decimals": [0, 1, 3 * 10**12 - 1],
    "texts": [0, 1, 3 * 10**12 - 1],
}


@pytest.mark.parametrize("form", PARQUET)
def test_times_of_a_parquet_file_are_exact(form: str, tmp_path: Path) -> None:
    file = tmp_path / "recording.parquet"
    pd.DataFrame({"operation": "read", "key": [1, 2, 3], "seconds": PARQUET[form]}).to_parquet(file)
    times = load_requests(file).times
    assert times is not None
    assert times.tolist() == SINCE_FIRST[form]


@given(st.lists(st.integers(0, 10**18), min_size=1, max_size=20), st.integers(0, 10**17 - 10**8))
def test_decimals_of_a_csv_file_are_exact(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], second: int
) -> None:
    """Doubles have not digits enough for the picoseconds of a calendar's seconds."""
    file = tmp_path_factory.mktemp("times") / "recording.csv"
    times = [second * 10**12 + int(time) for time in np.sort(gaps)]
    lines = [f"read,{number},{time // 10**12}.{time % 10**12:012}" for number, time in enumerate(times)]
    file.write_text("\n".join(["operation,key,seconds", *lines]))
    found = load_requests(file).times
    assert found is not None
    assert found.tolist() == [time - times[0] for time in times]


def test_a_number_with_an_exponent_is_as_near_as_a_double(tmp_path: Path) -> None:
    file = tmp_path / "recording.csv"
    file.write_text("operation,key,seconds\nread,1,0\nread,1,1e-05\nread,1,0.25\n")
    times = load_requests(file).times
    assert times is not None
    assert times.tolist() == [0, 10_000_000, 250_000_000_000]


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (["2", "1"], "seconds: request 2 comes before request 1"),
        (["2", ""], "seconds: request 2 has none"),
        (["2", "soon"], "seconds: request 2: 'soon' is no time"),
        (["2", "1_000"], "seconds: request 2: '1_000' is no time"),
        (["2", "nan"], "seconds: request 2: nan is no time"),
        (["0", "8640001"], "seconds: the requests are spread over 100 days; give those of at most 100"),
    ],
)
def test_what_is_no_time_is_refused(seconds: list[str], says: str, tmp_path: Path) -> None:
    file = tmp_path / "recording.csv"
    file.write_text("\n".join(["operation,key,seconds", *(f"read,1,{time}" for time in seconds)]))
    with pytest.raises(ConfigError) as refused:
        load_requests(file)
    assert str(refused.value).startswith(f"{file}: {says}")


def test_times_of_another_type_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "recording.parquet"
    frame = pd.DataFrame({"operation": ["read"], "key": [1], "seconds": [True]})
    frame.to_parquet(file)
    with pytest.raises(ConfigError, match="seconds: is of type bool"):
        load_requests(file)
    frame.assign(seconds=[Decimal("0.0000000000001")]).to_parquet(file)
    with pytest.raises(ConfigError, match="at most 12 decimals"):
        load_requests(file)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"recording": ""}, "recording: is missing"),
        ({"recording": "nowhere.csv"}, "recording: nowhere.csv: No such file"),
        ({"service": "table"}, "service: recorded requests are for an engine"),
        ({"rows": 10}, "rows: 10, and "),
        ({"rows": 10**6}, "rows: "),
        ({"row_size": 5000}, "row_size: 5000 B"),
        ({"engine": "fptree"}, "row_size: 504 B; rows of fptree have 8 B"),
        ({"speed_percent": 0}, "speed_percent: "),
    ],
)
def test_recordings_that_cannot_be_served_are_refused(
    parameters: dict[str, object], says: str, recording: Path
) -> None:
    with pytest.raises(ConfigError) as refused:
        point(**({"recording": recording} | parameters))
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize(
    ("lines", "parameters", "says"),
    [
        (["operation,key", "read,1", "read,2"], {}, "recording: the file does not say when"),
        (["operation,key,seconds", "read,1,0", "read,2,5", "read,2,5"], {}, "recording: the second half"),
        (["operation,key,seconds", "read,1,5"], {}, "recording: the second half"),
        (
            ["operation,key,seconds", "read,1,0", "read,2,86401", "read,2,90000"],
            {"speed_percent": 1},
            "speed_percent: at 1 % of their speed requests come over 104 days",
        ),
    ],
)
def test_times_that_make_no_load_are_refused(
    lines: list[str], parameters: dict[str, object], says: str, tmp_path: Path
) -> None:
    file = tmp_path / "recording.csv"
    file.write_text("\n".join(lines))
    with pytest.raises(ConfigError) as refused:
        point(file, **parameters)
    assert str(refused.value).startswith(says)


def test_a_recorded_part_refuses_power_failures_and_requests_that_it_has_not(recording: Path) -> None:
    part = des.RecordedPart(engine="main-memory", rows=400, requests=str(recording))
    with pytest.raises(ConfigError, match="no ledger"):
        des.Server(des.Environment(), [part], platform=MACHINE, crash=True)
    for parameters, says in (
        ({}, "parts.recorded: requests: missing"),
        ({"requests": "nowhere.csv"}, "recorded.requests: nowhere"),
    ):
        with pytest.raises(ConfigError) as refused:
            des.Server(des.Environment(), [("recorded", parameters)], platform=MACHINE)
        assert str(refused.value).startswith(says)
    server = des.Server(des.Environment(), [part], platform=MACHINE)
    with pytest.raises(ConfigError, match="first: 1500 is too much; choose at most 1499"):
        server.env.run(server.execute("recorded.request", 1500))


def test_a_load_without_end_has_no_finish() -> None:
    server = des.Server(des.Environment(), [des.LogPart()], platform=MACHINE)
    load = des.NativeLoad(server, [des.Tenant("a", des.Poisson(1e6), [des.Ask("log.append")])])
    with pytest.raises(ConfigError, match="no end"):
        load.finish()
