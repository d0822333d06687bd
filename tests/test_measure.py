"""``pmsim measure``: what it writes and how it judges; no test asserts a time of this machine."""

import dataclasses
import json
import math
from typing import get_args

import pandas as pd
import pytest

import pmsim
from pmsim.calibrate_profile import profile_text
from pmsim.cli import main
from pmsim.host_blocks import chosen_blocks, host_blocks
from pmsim.host_machine import this_machine
from pmsim.host_timing import QUICK, Subject, Timing, chase, time_benchmark
from pmsim.kinds import KINDS
from pmsim.measure import MeasureResult, Row, order_of
from pmsim.platforms import DURABLE


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """Any profile will do as the likeness of this machine: it is measured against, not trusted."""
    path = tmp_path_factory.mktemp("profile") / "likeness.toml"
    path.write_text(profile_text(pmsim.load_platform("spr-cxl")))
    return path


@pytest.fixture(scope="module")
def measured(profile, tmp_path_factory):
    out = tmp_path_factory.mktemp("measured")
    arguments = ["measure", "--quick", "--blocks", "latency", "--platform", str(profile), "--out", str(out)]
    assert main(arguments) == 0
    return out


def test_it_writes_every_subject_with_both_values_and_their_ratio(measured):
    frame = pd.read_parquet(measured / "measurements.parquet")
    assert {"idle read", "persist ntstore", "persist flush"} <= set(frame["subject"])
    assert (frame["measured"] > 0).all()
    assert (frame["simulated"] > 0).all()
    assert frame["ratio"].tolist() == pytest.approx((frame["simulated"] / frame["measured"]).tolist())
    assert (frame["repetitions"] == QUICK.repetitions).all()
    read_back = pd.read_csv(measured / "measurements.csv")
    assert read_back["subject"].tolist() == frame["subject"].tolist()
    assert json.loads(frame["parameters"][0])["memory"] == "dram"


def test_provenance_names_machine_platform_and_memory(measured):
    provenance = json.loads((measured / "provenance.json").read_text())
    assert provenance["machine"]["cpu"] == this_machine().cpu
    assert provenance["machine"]["kernel"] == this_machine().kernel
    assert "clflush" in provenance["machine"]["flags"]
    assert provenance["platform"] == "spr-cxl"
    assert provenance["memory"] == "anonymous memory (DRAM)"
    assert not provenance["is_dax"]


def test_the_report_works_offline_and_holds_the_figure(measured):
    text = (measured / "report.html").read_text()
    assert "measured on this machine" in text
    assert "idle read" in text
    assert "plotly.js v" in text


def test_a_file_that_is_not_dax_is_measured_with_a_warning(profile, tmp_path, capsys):
    arguments = ["measure", "--quick", "--blocks", "latency", "--platform", str(profile)]
    status = main([*arguments, "--on", str(tmp_path / "memory"), "--out", str(tmp_path / "out")])
    assert status == 0
    assert "is not on a DAX file system" in " ".join(capsys.readouterr().out.split())
    frame = pd.read_parquet(tmp_path / "out" / "measurements.parquet")
    assert {json.loads(parameters)["memory"] for parameters in frame["parameters"]} == {"pmem"}
    assert (tmp_path / "memory").stat().st_size == 0


@pytest.mark.parametrize("command", ["measure", "calibrate"])
def test_a_file_that_holds_data_is_left_alone(command, profile, tmp_path, capsys):
    notes = tmp_path / "notes.txt"
    notes.write_text("years of work\n")
    given = ["--platform", str(profile)] if command == "measure" else ["--out", str(tmp_path / "p.toml")]
    assert main([command, "--quick", "--on", str(notes), *given]) == 2
    assert f"--on {notes}: holds data that measuring would overwrite" in capsys.readouterr().err
    assert notes.read_text() == "years of work\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--blocks", "latenzy"], "--blocks: unknown block 'latenzy'; did you mean 'latency'?"),
        (["--blocks", "latency,"], "--blocks: unknown block ''"),
        (["--platform", "absent.toml"], "absent.toml: no such file"),
        (["--platform", "tum-6212"], "unknown platform 'tum-6212'"),
        (["--out", "{folder}/file.txt/out"], "--out"),
        (["--on", "{folder}"], "is a directory; name a file in it"),
        (["--on", "{folder}/absent/file"], "its directory does not exist"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(profile, tmp_path, capsys, arguments, message):
    (tmp_path / "file.txt").write_text("")
    given = [argument.format(folder=tmp_path) for argument in arguments]
    defaults = {"--platform": str(profile), "--out": str(tmp_path / "out"), "--blocks": "latency"}
    for option, value in defaults.items():
        given += [] if option in given else [option, value]
    assert main(["measure", "--quick", *given]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_without_a_profile_it_says_how_to_get_one(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["measure", "--quick"]) == 2
    assert "run pmsim calibrate first" in capsys.readouterr().err


def row(name, measured, simulated, block="log", metric="ops_per_s"):
    subject = Subject(name=name, block=block, benchmark="", host={}, kind="", metric=metric)
    timing = Timing(measured, measured, measured, measured, measured, 0, 1.0, 5, False, measured, measured)
    return Row(subject, timing, simulated)


def test_only_pairs_that_differ_by_more_than_a_fifth_have_an_order():
    order = order_of("log", [row("a", 100, 90), row("b", 119, 80), row("c", 200, 85)])
    assert order.pairs == 2  # c with a and with b; a and b are too near
    assert order.kept == 1
    assert order.swapped == (("c", "a"),)


def test_of_two_times_the_shorter_one_is_the_faster():
    times = [row("slow", 300, 100, metric="latency_ns"), row("fast", 100, 300, metric="latency_ns")]
    order = order_of("latency", times)
    assert order.swapped == (("fast", "slow"),)
    assert "not: fast over slow" in order.told()


def test_a_prediction_that_failed_keeps_no_order():
    assert order_of("log", [row("a", 100, math.nan), row("b", 200, 10)]).kept == 0


def test_values_of_different_units_are_not_compared():
    bandwidth = Row(
        Subject(name="x", block="log", benchmark="", host={}, kind="", metric="bandwidth_gb_s"),
        Timing(0, 0, 1.0, 1.0, 1.0, 64, 1.0, 5, False, 0, 0),
        1.0,
    )
    assert order_of("log", [row("a", 100, 100), bandwidth]).pairs == 0


def test_near_means_within_a_factor_of_two_to_either_side():
    rows = (
        row("a", 100, 200),
        row("b", 100, 201),
        row("c", 100, 50),
        row("d", 100, 49),
        row("e", 100, math.nan),
    )
    platform = pmsim.load_platform("tum-6212u")
    result = MeasureResult(rows, this_machine(), platform, None, (), "")
    assert result.near() == (2, 5)


def test_a_timing_is_expressed_in_the_metric_of_its_subject():
    timing = Timing(
        ns=20.0,
        best_ns=19.0,
        rate=1e8,
        low=9e7,
        high=1.1e8,
        bytes=64,
        cpu_share=1.0,
        repetitions=5,
        is_dax=False,
        ns_low=19.0,
        ns_high=29.0,
    )

    def subject(metric):
        return Subject("", "", "", {}, "", {}, metric)

    assert subject("latency_ns").value(timing) == 20
    assert subject("bandwidth_gb_s").value(timing) == pytest.approx(6.4)
    assert subject("ops_per_s").value(timing) == 1e8
    assert subject("ops_per_s").spread(timing) == pytest.approx(0.2)
    assert subject("bandwidth_gb_s").spread(timing) == pytest.approx(0.2)
    # Single persists are timed on their own, with pauses in between that keep their rate steady.
    assert subject("latency_ns").spread(timing) == pytest.approx(0.5)


def test_every_block_has_subjects_with_names_of_their_own_on_both_memories():
    for block in host_blocks().values():
        for memory in ("dram", "pmem"):
            subjects = block.subjects(this_machine(), QUICK, memory)
            names = [subject.name for subject in subjects]
            assert names
            assert len(set(names)) == len(names)
            assert {subject.host.get("memory", memory) for subject in subjects} == {memory}


def test_every_block_can_be_measured_and_simulated(profile):
    for block in host_blocks().values():
        subject = block.subjects(this_machine(), QUICK, "dram")[0]
        likeness = pmsim.load_platform(str(profile))
        assert subject.time(likeness, QUICK, None).rate > 0
        assert subject.predict(likeness) > 0


def subject_named(block, name):
    subjects = host_blocks()[block].subjects(this_machine(), QUICK, "dram")
    return next(subject for subject in subjects if subject.name == name)


def test_the_hybrid_chooses_by_the_figures_of_the_profile(profile):
    hybrid = subject_named("page-flush", "hybrid, 16 dirty")
    assert hybrid.time(pmsim.load_platform(str(profile)), QUICK, None).rate > 0
    with pytest.raises(pmsim.ConfigError, match="cost_stream_line"):
        time_benchmark(hybrid.benchmark, hybrid.host, QUICK)


@pytest.mark.parametrize(
    ("block", "name"), [("in-place", "fam, dependent-read 16 B random"), ("interleave", "lookup, plain")]
)
def test_what_is_measured_cold_is_not_simulated_out_of_the_last_level_cache(block, name):
    subject = subject_named(block, name)
    rates = [
        subject.predict(pmsim.load_platform({"base": "spr-cxl", "llc": {"size": size}}))
        for size in ("8 MiB", "256 MiB")
    ]
    assert rates[0] == rates[1]


def test_every_technique_and_every_read_has_a_subject():
    def choices(block, *names):
        subjects = host_blocks()[block].subjects(this_machine(), QUICK, "dram")
        return {tuple(subject.host[name] for name in names) for subject in subjects}

    techniques = KINDS["page-flush"].parameter_model.model_fields["technique"].annotation
    assert choices("page-flush", "technique") == {(technique,) for technique in get_args(techniques)}
    reads = {(algorithm, how) for algorithm in ("cow", "log", "fam") for how in ("read", "dependent-read")}
    assert reads <= choices("in-place", "algorithm", "operation")


def test_blocks_are_chosen_by_name_once_or_all():
    assert [block.name for block in chosen_blocks(["bandwidth,latency", "bandwidth"])] == [
        "bandwidth",
        "latency",
    ]
    assert len(chosen_blocks([])) == len(host_blocks())


def test_a_benchmark_refuses_what_cannot_be():
    with pytest.raises(pmsim.ConfigError, match="fewer than two nodes"):
        time_benchmark("chase", chase(128, 128, cold=False), QUICK)
    with pytest.raises(pmsim.ConfigError, match="known: chase"):
        time_benchmark("chaze", {}, QUICK)


def test_engines_run_here_and_simulated_on_the_same_rows(profile, tmp_path):
    arguments = ["measure", "--quick", "--blocks", "engines", "--platform", str(profile)]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    frame = pd.read_parquet(tmp_path / "out" / "measurements.parquet").set_index("subject")
    assert (frame["measured"] > 0).all()
    assert (frame["simulated"] > 0).all()
    given = json.loads(frame["parameters"]["three-tier, ycsb-a"])
    assert (given["engine"], given["workload"], given["dram_capacity"]) == ("three-tier", "ycsb-a", "4 MiB")
    machine = pmsim.load_platform({"base": str(profile), "block_device": "nvme-p4510"})
    durable = dataclasses.replace(machine, pmem_persistence=DURABLE)
    again = pmsim.simulate_point("oltp", durable, given, seed=1)["transactions_per_s"]
    assert frame["simulated"]["three-tier, ycsb-a"] == pytest.approx(again)
