"""``pmsim calibrate``: a profile of this machine, however fast it is; no test asserts a time."""

import contextlib
import io
import signal
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest

import pmsim
from pmsim import calibrate_read
from pmsim.calibrate_caches import chase_latency, fit_last_level
from pmsim.calibrate_draft import Draft, base_of
from pmsim.calibrate_profile import profile_text
from pmsim.calibrate_steps import Step, dram_steps, fit_step
from pmsim.calibrate_tier import dram_as_second_tier, modules_as_second_tier
from pmsim.cli import main
from pmsim.errors import ConfigError
from pmsim.fitting import Candidate, cost_of_ratio, search
from pmsim.host_machine import HostMachine, this_machine
from pmsim.host_subjects import DeviceSubjects
from pmsim.host_timing import FULL, QUICK
from pmsim.units import Quantity

MIB = 2**20


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """One quick calibration of this machine: its profile, and what was printed."""
    path = tmp_path_factory.mktemp("calibrated") / "my-machine.toml"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["calibrate", "--quick", "--out", str(path)]) == 0
    return path, printed.getvalue()


@pytest.fixture
def profile(calibrated):
    return calibrated[0]


def test_it_writes_a_complete_profile_with_source_and_origin(profile):
    platform = pmsim.load_platform(str(profile))
    assert platform.name == "my-machine"
    rows = platform.rows()
    assert all(row.source and row.origin in ("measured", "fitted", "assumed", "datasheet") for row in rows)
    origin = {f"{row.section}.{row.name}": row.origin for row in rows}
    assert origin["core.frequency"] == origin["l1.latency"] == "measured"
    assert origin["core.shared_read_latency"] == origin["core.fence_latency"] == "fitted"
    assert origin["dram.row_size"] == "assumed"
    assert platform.value("core", "cores") == this_machine().cores


def test_a_profile_that_lacks_a_newer_parameter_asks_for_another_calibration(profile, tmp_path):
    older = tmp_path / "older.toml"
    lines = profile.read_text().splitlines(keepends=True)
    older.write_text("".join(line for line in lines if not line.startswith("mispredict_latency")))
    with pytest.raises(ConfigError, match=r"mispredict_latency: missing; an earlier version .*, run it again"):
        pmsim.load_platform(str(older))


def test_a_scenario_runs_on_the_profile_on_both_tiers(profile):
    for memory in ("dram", "pmem"):
        parameters = {"memory": memory, "operation": "load", "pattern": "random", "region_size": 16 * MIB}
        assert pmsim.simulate_point("latency", str(profile), parameters)["latency_ns"] > 0


def test_the_second_tier_reads_like_the_dram_that_it_is(profile):
    def latency(memory):
        parameters = {"memory": memory, "operation": "load", "pattern": "random", "region_size": 64 * MIB}
        return pmsim.simulate_point("latency", str(profile), parameters)["latency_ns"]

    assert latency("pmem") == pytest.approx(latency("dram"), rel=0.1)


def test_the_text_of_a_profile_reads_back_as_the_same_machine(tmp_path):
    platform = pmsim.load_platform("spr-cxl")
    path = tmp_path / "copy.toml"
    path.write_text(profile_text(platform))
    copy = pmsim.load_platform(str(path))
    assert copy.hash == platform.hash
    assert copy.rows() == platform.rows()
    assert tomllib.loads(path.read_text())["title"] == platform.title


def test_a_table_of_fits_is_printed(calibrated):
    output = calibrated[1]
    assert "idle read" in output
    assert "fitted" in output
    assert "prediction" in output
    assert "my-machine.toml" in output


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("profile", "ends in .toml"),
        ("folder.toml", "is a directory"),
        ("file.txt/profile.toml", "cannot be written"),
        ("scenario.toml", "exists and is no profile of a machine; choose another file"),
    ],
)
def test_an_unusable_out_is_refused_before_anything_is_measured(tmp_path, capsys, out, message, monkeypatch):
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "file.txt").write_text("")
    (tmp_path / "scenario.toml").write_text('kind = "latency"\nplatform = "tum-6212u"\n')
    monkeypatch.setattr("pmsim.commands.calibrate.calibrate", lambda **_: pytest.fail("measured"))
    assert main(["calibrate", "--out", str(tmp_path / out)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_last_level_fit_finds_the_cache_that_the_chases_were_made_with():
    truth = {"l2_size": 2 * MIB, "l2_ns": 4.0, "llc_size": 16 * MIB, "llc_ns": 40.0, "memory_ns": 120.0}
    chases = {region * MIB: chase_latency(region * MIB, **truth) for region in (4, 8, 12, 16, 32, 64)}
    found = fit_last_level(chases, l2_size=2 * MIB, l2_ns=4.0, memory_ns=120.0, largest=480 * MIB)
    assert found.size == 16 * MIB
    assert found.latency_ns == pytest.approx(40, rel=0.05)


def test_a_chase_within_l2_and_one_far_beyond_the_caches_have_the_latency_of_their_level():
    caches = {"l2_size": 2 * MIB, "l2_ns": 4.0, "llc_size": 8 * MIB, "llc_ns": 40.0, "memory_ns": 120.0}
    assert chase_latency(MIB, **caches) == 4
    assert chase_latency(4 * MIB, **caches) == pytest.approx(22)
    assert chase_latency(1000 * MIB, **caches) == pytest.approx(120, rel=0.02)


def test_a_search_moves_a_parameter_to_where_its_cost_is_least():
    wanted = 120_000
    candidate = Candidate("core", "shared_write_latency", Quantity.TIME, 0, 10**7)
    start = pmsim.load_platform("tum-6212u")
    found = search(
        start,
        [candidate],
        lambda platform: cost_of_ratio(platform.value("core", "shared_write_latency"), wanted),
        6,
    )
    assert found.platform.value("core", "shared_write_latency") == pytest.approx(wanted, rel=0.05)
    assert found.cost < found.start


def machine(*flags):
    return HostMachine("cpu", 2, 2, 1, (), 2**30, flags, False, "6.1", "never")


def test_the_base_and_the_flush_follow_from_the_instructions():
    assert base_of(machine("amx_tile", "clflush")) == "spr-cxl"
    assert base_of(machine("avx512f", "clflush")) == "tum-6212u"
    assert machine("clflush", "clflushopt").flush() == "clflushopt"
    assert machine("clflush", "clflushopt", "clwb").flush() == "clwb"
    assert machine("clflush").flush() == "clflush"


def test_a_file_that_is_not_dax_is_fitted_with_a_warning(tmp_path, capsys):
    out = tmp_path / "file.toml"
    assert main(["calibrate", "--quick", "--on", str(tmp_path / "memory"), "--out", str(out)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "is not on a DAX file system" in output
    assert "idle read, file" in output
    assert (tmp_path / "memory").stat().st_size == 0
    platform = pmsim.load_platform(str(out))
    assert platform.parameters["pmem"]["media_read_latency"].origin == "fitted"
    assert platform.parameters["pmem"]["dimms"].origin == "assumed"


def test_a_file_that_cannot_be_mapped_is_refused_before_anything_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("pmsim.calibrate.read_core", lambda *_: pytest.fail("measured"))
    assert main(["calibrate", "--quick", "--on", "/dev/null", "--out", str(tmp_path / "p.toml")]) == 2
    assert "pmsim: --on: /dev/null: cannot be mapped" in capsys.readouterr().err


def test_a_directory_as_file_is_one_line_and_exit_status_2(tmp_path, capsys):
    assert main(["calibrate", "--quick", "--on", str(tmp_path), "--out", str(tmp_path / "p.toml")]) == 2
    error = capsys.readouterr().err
    assert "is a directory; name a file in it" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "p.toml").exists()


def test_modules_behind_a_dax_file_start_from_a_calibrated_machine():
    draft = Draft(pmsim.load_platform("spr-cxl"), machine("clflush"), "x", "today")
    dram_as_second_tier(draft)
    modules_as_second_tier(draft)
    draft.platform.check()
    assert draft.platform.value("pmem", "block_size") == 256
    assert draft.platform.value("pmem", "dimms") == 6
    assert draft.platform.value("core", "cores") == pmsim.load_platform("spr-cxl").value("core", "cores")


def test_a_draft_names_what_it_has_not_measured():
    draft = Draft(pmsim.load_platform("spr-cxl"), machine("clflush"), "x", "today")
    draft.set("core.cores", 3, "counted")
    rows = {f"{row.section}.{row.name}": row for row in draft.platform.rows()}
    assert rows["core.cores"].origin == "measured"
    assert rows["core.window"].origin == "assumed"
    assert rows["core.window"].source.startswith("as spr-cxl, not measured: ")


@pytest.mark.parametrize("window", [64, 224, 500])
def test_the_window_is_found_where_loads_cease_to_overlap(monkeypatch, window):
    # The region is to be many times as large as the caches, as it is where a host is measured.
    caches = {"tlb": {"dram_page_size": "1 GiB"}, "l2": {"size": "256 KiB"}, "llc": {"size": "1920 KiB"}}
    platform = {"base": "spr-cxl", "core": {"window": window}, **caches}
    loop_here, loop_simulated = 21, 13

    def simulated(benchmark, parameters, effort):
        apart = parameters["instructions"] + loop_here - loop_simulated
        point = pmsim.simulate_point(benchmark, platform, {**parameters, "instructions": apart})
        return SimpleNamespace(ns=64 / point["bandwidth_gb_s"])

    monkeypatch.setattr(calibrate_read, "time_benchmark", simulated)
    draft = Draft(pmsim.load_platform("spr-cxl"), machine("clflush"), "x", "today")
    loads = {"memory": "dram", "pattern": "random", "region_size": 64 * MIB}
    calibrate_read.read_window(draft, QUICK, pmsim.simulate_point("latency", platform, loads)["latency_ns"])
    assert window - 16 <= draft.platform.value("core", "window") <= window + 1


@pytest.mark.parametrize("effort", [FULL, QUICK])
@pytest.mark.parametrize("size", ["7 MiB", "105 MiB"])
def test_the_way_to_memory_is_found_behind_a_last_level_cache_of_any_size(size, effort):
    truth = pmsim.load_platform({"base": "spr-cxl", "llc": {"size": size}})
    far = {"memory": "dram", "region_size": 2048 * MIB}  # the caches hold next to nothing of it
    memory_ns = pmsim.simulate_point("latency", truth, far)["latency_ns"]
    wanted = truth.value("core", "shared_read_latency")
    draft = Draft(truth, machine("clflush"), "x", "today")
    draft.set("core.shared_read_latency", wanted // 2, "another")
    subjects = DeviceSubjects(machine("clflush"), effort).all()
    step = Step("idle read", ("core.shared_read_latency",), ("idle read",), {})
    fit_step(draft, step, subjects, {"idle read": SimpleNamespace(ns=memory_ns)}, rounds=5)
    assert draft.platform.value("core", "shared_read_latency") == pytest.approx(wanted, rel=0.1)


def test_bandwidth_that_is_measured_cold_is_not_simulated_out_of_the_last_level_cache():
    name = "read, load sequential, 1 thread"
    quick, full = (
        DeviceSubjects(machine("clflush"), effort).all()[name].predict(pmsim.load_platform("spr-cxl"))
        for effort in (QUICK, FULL)
    )
    assert quick == pytest.approx(full, rel=0.05)


def test_the_link_is_what_all_cores_together_read_and_stream():
    draft = Draft(pmsim.load_platform("spr-cxl"), machine("clflush"), "x", "today")
    rates = {"read, load sequential, 2 threads": 40.0, "write, ntstore sequential, 2 threads": 32.0}
    assert calibrate_read.read_link(draft, machine("clflush"), rates) == set(rates)
    link = [draft.platform.value("controller", f"link_{way}_interval") for way in ("read", "write")]
    assert link == [1600, 2000]
    alone = Draft(pmsim.load_platform("spr-cxl"), machine("clflush"), "x", "today")
    assert not calibrate_read.read_link(alone, machine("clflush"), {"read, load sequential, 1 thread": 40.0})
    assert alone.platform.value("controller", "link_read_interval") == 0


def test_stores_in_order_of_one_thread_are_found_behind_a_link_that_is_faster():
    host = machine("clflush")
    draft = Draft(pmsim.load_platform("spr-cxl"), host, "x", "today")
    draft.set("controller.link_write_interval", 4000, "measured")
    measured = draft.platform.with_values({"core": {"line_interval": 8400}}, source="the machine")

    def subject(operation):
        parameters = {"memory": "dram", "operation": operation, "pattern": "sequential", "threads": 1}
        return SimpleNamespace(
            value=lambda platform: subject(operation).predict(platform),
            predict=lambda platform: pmsim.simulate_point("bandwidth", platform, parameters)["bandwidth_gb_s"],
        )

    subjects = {f"write, {how} sequential, 1 thread": subject(how) for how in ("ntstore", "store")}
    persists = {f"persist {how}": SimpleNamespace(ns=100.0) for how in ("flush", "ntstore")}
    timings = dict.fromkeys(subjects, measured) | persists
    (step,) = (step for step in dram_steps(subjects, timings, host) if set(step.subjects) == set(subjects))
    fit_step(draft, step, subjects, timings, rounds=1)
    for one in subjects.values():
        assert one.predict(draft.platform) == pytest.approx(one.predict(measured), rel=0.1)


def test_an_interrupted_calibration_writes_nothing(tmp_path):
    out = tmp_path / "profile.toml"
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from pmsim.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "calibrate", "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    steps = (line for line in process.stderr if line.startswith("calibrating: "))
    assert "clock" in next(steps)
    next(steps)  # into the microbenchmarks: many more follow
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert not out.exists()
