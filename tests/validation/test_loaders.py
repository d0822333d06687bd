"""Readers of published measurements, on made-up numbers in the published layouts."""

import json
import shutil
from pathlib import Path

import pytest

from pmsim.errors import ConfigError
from pmsim.validation.loaders import DataSet, Measurement, load, optane_study, perma_bench

DATA = Path(__file__).parents[1] / "data"
GIB = 1 << 30
REAL = Path(__file__).parents[3] / "shared" / "measurements"


@pytest.fixture(scope="module")
def optane() -> DataSet:
    return optane_study.load(DATA / "optane_study")


@pytest.fixture(scope="module")
def perma() -> DataSet:
    return perma_bench.load(DATA / "perma_bench")


def pick(data: DataSet, experiment: str, **parameters: object) -> Measurement:
    found = [
        row
        for row in data.rows
        if row.experiment == experiment
        and parameters.items() <= {**row.parameters, "metric": row.metric}.items()
    ]
    assert len(found) == 1, found
    return found[0]


def test_idle_latencies_of_both_media(optane: DataSet) -> None:
    row = pick(optane, "02-best_case_latency", memory="pmem", operation="load", pattern="random")
    assert (row.kind, row.metric, row.value) == ("latency", "latency_ns", 300.5)
    row = pick(optane, "02-best_case_latency", memory="dram", operation="store+clwb")
    assert (row.value, row.medium, row.platform) == (55.5, "dram", "ucsd-8260")


def test_the_swapped_header_is_put_right_and_said(optane: DataSet) -> None:
    streaming = pick(optane, "04-bandwidth_thcount_optane", operation="ntstore", threads=4)
    flushed = pick(optane, "04-bandwidth_thcount_optane", operation="store+clwb", threads=4)
    assert (streaming.value, flushed.value) == (12.5, 5.5)
    assert any("swapped" in note for note in optane.notes)


def test_a_corrected_header_is_read_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "graphs"
    folder.mkdir()
    (folder / "04-bandwidth_thcount_optane.csv").write_text(
        "Threads,Read,Write(ntstore),Write(clwb)\n1,3,4,1.5\n"
    )
    data = optane_study.load(tmp_path)
    assert pick(data, "04-bandwidth_thcount_optane", operation="ntstore").value == 4
    assert data.notes == []


def test_threads_of_a_sequential_figure_have_regions_of_their_own(optane: DataSet) -> None:
    row = pick(optane, "04-bandwidth_thcount_optane", operation="load", threads=4)
    assert row.parameters["pattern"] == "sequential"
    assert row.parameters["access_size"] == 256
    assert row.parameters["shared_region"] is False
    assert row.parameters["region_size"] == 4 * 2 * GIB
    assert row.parameters["prefetcher"] is False
    assert "dimms" not in row.parameters


def test_one_module_is_not_interleaved(optane: DataSet) -> None:
    for row in optane.rows:
        alone = "_ni" in row.experiment or row.experiment.startswith("13-")
        if row.experiment.startswith(("04", "05", "13")):
            assert (row.parameters.get("dimms") == 1) is alone, row


def test_sizes_are_measured_at_the_best_thread_count_of_each_kernel(optane: DataSet) -> None:
    for operation, threads in (("load", 16), ("ntstore", 4), ("store+clwb", 12)):
        row = pick(optane, "05-bandwidth_accesssize_optane", operation=operation, access_size=4096)
        assert (row.parameters["threads"], row.parameters["pattern"]) == (threads, "random")


def test_one_persist_and_fence_intervals(optane: DataSet) -> None:
    row = pick(optane, "12-flush_instr_lat", operation="ntstore")
    assert (row.kind, row.metric, row.parameters["threads"]) == ("persist", "latency_ns", 1)
    row = pick(optane, "12-flush_instr_bw", operation="store")
    assert (row.metric, row.value, row.parameters["threads"]) == ("bandwidth_gb_s", 2.25, 6)
    row = pick(optane, "13-sfence_interval ntstore", fence_every=1024)
    assert (row.value, row.parameters["threads"], row.parameters["pattern"]) == (2.25, 1, "sequential")
    row = pick(optane, "13-sfence_interval clwb(write size)", fence_every=1024)
    assert (row.value, row.parameters["flush_every"]) == (1.5, 1024)
    assert "flush_every" not in pick(optane, "13-sfence_interval clwb(every 64B)", fence_every=1024).parameters


def test_the_random_subset_is_in_decimal_megabytes(optane: DataSet) -> None:
    row = pick(optane, "random_bandwidth_subset", operation="load")
    assert row.value == 10.0
    assert row.parameters["shared_region"] is True
    assert row.use == "calibration"
    assert pick(optane, "random_bandwidth_subset", operation="ntstore").parameters["dimms"] == 1
    assert "dimms" not in pick(optane, "random_bandwidth_subset", operation="store+clwb").parameters


def test_binary_units_on_request() -> None:
    binary = optane_study.load(DATA / "optane_study", units="binary")
    assert pick(binary, "random_bandwidth_subset", operation="load").value == pytest.approx(10000 * 2**20 / 1e9)
    row = pick(binary, "04-bandwidth_thcount_dram", operation="load", threads=1)
    assert row.value == pytest.approx(7.5 * 2**30 / 1e9)
    assert pick(binary, "12-flush_instr_lat", operation="ntstore").value == 120.5


def test_repetitions_of_the_raw_sweep_are_reduced_to_their_median(optane: DataSet) -> None:
    row = pick(optane, "data/bandwidth.csv", operation="load", pattern="random", threads=4)
    assert row.value == 11.0
    assert row.use == "calibration"


def test_unseen_points_of_the_raw_sweep_are_predictions(optane: DataSet) -> None:
    assert pick(optane, "data/bandwidth.csv", operation="ntstore", threads=6).use == "prediction"


def test_strides_of_the_raw_sweep(optane: DataSet) -> None:
    row = pick(optane, "data/bandwidth.csv", pattern="sequential")
    assert (row.parameters["threads"], row.parameters["shared_region"]) == (2, False)
    row = pick(optane, "data/bandwidth.csv", pattern="strided")
    assert (row.parameters["stride"], row.parameters["dimms"], row.parameters["prefetcher"]) == (1024, 1, True)


def test_chunks_that_are_not_aligned_to_their_size(optane: DataSet) -> None:
    row = pick(optane, "data/bandwidth.csv", alignment=64)
    assert (row.parameters["access_size"], row.value, row.use) == (256, 8.0, "prediction")
    figure = [row.parameters for row in optane.rows if row.experiment.startswith("05")]
    assert {(row["access_size"], row.get("alignment")) for row in figure} == {
        (64, None),
        (4096, None),
        (24576, 4096),
    }


def test_what_cannot_be_expressed_is_counted_with_its_reason(optane: DataSet) -> None:
    assert dict(optane.skipped.counts) == {
        "bandwidth.csv: remote socket": 1,
        "bandwidth.csv: power budget other than the usual one": 1,
        "alignment.csv: threads bound to single modules": 1,
    }


def test_the_line_of_types_in_a_raw_sweep_is_no_measurement(tmp_path: Path) -> None:
    columns = {"access_size": "integer", "avgpower": "integer", "media": "string", "operation": "string"}
    columns |= {"task_type": "string", "threads": "integer", "throughput": "float"}
    head = f"{','.join(columns)}\n{','.join(columns.values())}\n"
    path = tmp_path / "data" / "bandwidth.csv"
    path.parent.mkdir()
    path.write_text(head + "256,15000,lpmem,Load,RandBW,4,10000.0\n")
    data = optane_study.load(tmp_path)
    assert [row.value for row in data.rows] == [10.0]
    assert not data.skipped.counts
    path.write_text(head)
    with pytest.raises(ConfigError, match=r"bandwidth.csv: no measurements behind the header"):
        optane_study.load(tmp_path)


def test_fences_and_allocations_of_the_raw_sweep(optane: DataSet) -> None:
    row = pick(optane, "data/flush.csv", pattern="sequential")
    assert (row.parameters["operation"], row.parameters["fence_every"], row.value) == ("store+clwb", 256, 1.0)
    assert "flush_every" not in row.parameters
    row = pick(optane, "data/flush.csv", pattern="random")
    assert (row.parameters["fence_every"], row.parameters["flush_every"]) == (4096, 1024)
    assert pick(optane, "data/alignment.csv", shared_region=True, threads=6).value == 9.0
    assert pick(optane, "data/alignment.csv", shared_region=False).value == 8.0
    assert pick(optane, "data/alignment.csv", threads=1).parameters["dimms"] == 1


def test_gibibytes_become_gigabytes(perma: DataSet) -> None:
    row = pick(perma, "random_reads", threads=8)
    assert row.value == pytest.approx(10 * GIB / 1e9)
    assert row.use == "calibration"
    assert "fence_every" not in row.parameters
    assert row.parameters["address_list"] is True


def test_every_persisting_write_ends_in_a_fence(perma: DataSet) -> None:
    row = pick(perma, "random_writes", operation="store+clwb")
    assert (row.parameters["fence_every"], row.parameters["flush_every"]) == (64, 64)
    row = pick(perma, "sequential_writes", operation="store")
    assert "fence_every" not in row.parameters
    assert (row.medium, row.parameters["shared_region"]) == ("dram", False)


def test_a_chain_gives_a_rate_and_a_latency(perma: DataSet) -> None:
    rate = pick(perma, "operation_latency", threads=16, metric="operations_per_s")
    assert (rate.kind, rate.value) == ("operations", 3e7)
    assert pick(perma, "operation_latency", threads=16, metric="latency_ns").value == 700.0


def test_a_chain_measured_on_dram_names_dram(perma: DataSet) -> None:
    row = pick(perma, "operation_latency", threads=1, metric="latency_ns")
    assert row.parameters["operations"] == "rd_64,wd_64_cache_-64"


def test_published_json_of_a_machine_that_was_never_fitted(perma: DataSet) -> None:
    rows = [row for row in perma.rows if row.platform == "perma-a128"]
    assert {row.use for row in rows} == {"prediction"}
    reads = next(row for row in rows if row.parameters.get("operation") == "load")
    assert reads.value == pytest.approx(8 * GIB / 1e9)
    assert (reads.parameters["region_size"], reads.parameters["shared_region"]) == (GIB, True)
    writes = next(row for row in rows if row.parameters.get("operation") == "ntstore")
    assert (writes.parameters["fence_every"], writes.parameters["shared_region"]) == (512, False)


def test_chains_of_published_json(perma: DataSet) -> None:
    row = pick(perma, "hash_index_update", metric="operations_per_s")
    assert row.parameters["operations"] == "rp_512,wp_64_cache_128,wp_64_cache_-128"
    assert pick(perma, "hash_index_update", metric="latency_ns").value == 800.0


def test_two_published_workloads_side_by_side(perma: DataSet) -> None:
    written = pick(perma, "page_propagation", metric="group_2_bandwidth_gb_s")
    assert (written.kind, written.unit) == ("mixed", "GB/s")
    assert written.value == pytest.approx(3 * GIB / 1e9)
    assert written.parameters["groups"] == [
        {"task": "read", "memory": "pmem", "threads": 8, "access_size": 4096},
        {"task": "overwrite", "memory": "pmem", "threads": 4, "access_size": 4096},
    ]


def test_published_json_that_cannot_be_expressed_is_counted(perma: DataSet) -> None:
    assert dict(perma.skipped.counts) == {
        "random_reads: skewed distribution": 1,
        "page_propagation: two workloads, of which one has no task in pmsim": 1,
        "other-machine.json: no profile of this machine": 1,
    }


def test_a_parent_folder_holds_both_sets() -> None:
    assert [data.name for data in load([DATA])] == ["optane-study", "perma-bench"]


def test_a_set_named_twice_is_read_once() -> None:
    assert len(load([DATA / "optane_study", DATA / "optane_study"])) == 1


def test_a_set_named_in_two_ways_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA / "perma_bench")
    named = [DATA / "optane_study", DATA, Path("../optane_study"), Path()]
    assert [data.name for data in load(named)] == ["optane-study", "perma-bench"]


OPTANE_FAULTS = [
    ("graphs/02-best_case_latency.csv", "Read\\Random", "Read\\Upwards", "line 3: 'Read\\Upwards': unknown"),
    (
        "graphs/02-best_case_latency.csv",
        "300.5",
        "-300.5",
        "column 'Optane': '-300.5' is not a positive number",
    ),
    ("graphs/04-bandwidth_thcount_dram.csv", "Threads", "Cores", "no column 'Threads'"),
    ("graphs/04-bandwidth_thcount_dram.csv", "15.0,", "", "line 3: expected 4 values"),
    ("graphs/04-bandwidth_thcount_dram.csv", "\n2,", "\n2.5,", "'2.5' is not a whole number"),
    ("graphs/05-bandwidth_accesssize_optane.csv", "9.5", "fast", "column 'Read'"),
    ("random_bandwidth_subset.csv", "lpmem,1,Load", "flash,1,Load", "column 'media': 'flash': unknown"),
    ("random_bandwidth_subset.csv", "NTStore", "Stream", "column 'operation': 'Stream': unknown"),
    ("data/bandwidth.csv", "throughput", "speed", "no column 'throughput'"),
    ("data/flush.csv", "lpmem,0", "lpmem,9", "column 'operation'"),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), OPTANE_FAULTS)
def test_malformed_tables_are_one_clear_line(
    tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    shutil.copytree(DATA / "optane_study", tmp_path / "set")
    path = tmp_path / "set" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load([tmp_path / "set"])
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pmem,random_reads,random", "flash,random_reads,random", "memory = 'flash': unknown"),
        ("random_reads,random,read", "random_reads,backwards,read", "exec_mode = 'backwards': unknown"),
        ("64,4,cache", "64,4,magic", "persist_instruction = 'magic': unknown"),
        ('"rp_256,wp_256_nocache"', '"rp_256,xp_256"', "operation 'xp_256' is not in the notation"),
        ("30000000.0", "0", "column 'ops_per_s': '0' is not a positive number"),
        ("bench,", "benchmark,", "no column 'bench'"),
    ],
)
def test_malformed_raw_table(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (DATA / "perma_bench" / "a256_raw.csv").read_text()
    assert old in text
    (tmp_path / "a256_raw.csv").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load([tmp_path])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"bm_name": "x", "benchmarks": 3}]', "expected an object with the list 'benchmarks'"),
        ('[{"bm_name": "x", "benchmarks": [{}]}]', "expected an object with 'config'"),
        ('[{"bm_name": "x", "benchmarks": [', "not a JSON file"),
        ("exec_mode", "exec_mode = 'zigzag': unknown"),
        ("access_size", "access_size = 0.5: expected a whole number"),
        ("bandwidth", "bandwidth = 'high': expected a positive number"),
    ],
)
def test_malformed_json(tmp_path: Path, content: str, message: str) -> None:
    if not content.startswith("["):
        config = {"exec_mode": "random", "operation": "read", "access_size": 64, "number_threads": 1}
        results: dict[str, object] = {"bandwidth": 1.0}
        spoilt = {"exec_mode": "zigzag", "access_size": 0.5, "bandwidth": "high"}[content]
        (results if content == "bandwidth" else config)[content] = spoilt  # type: ignore[index]
        content = json.dumps([{"bm_name": "x", "benchmarks": [{"config": config, "results": results}]}])
    (tmp_path / "apache-256.json").write_text(content)
    with pytest.raises(ConfigError) as caught:
        load([tmp_path])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_raw_table_of_an_unknown_machine_is_refused(tmp_path: Path) -> None:
    shutil.copy(DATA / "perma_bench" / "a256_raw.csv", tmp_path / "z9_raw.csv")
    with pytest.raises(ConfigError, match="machine 'z9': no profile"):
        load([tmp_path])


def test_folders_without_a_data_set_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no known data set here; known: OptaneStudy"):
        load([tmp_path])
    with pytest.raises(ConfigError, match="not a directory"):
        load([tmp_path / "absent"])


@pytest.mark.skipif(not REAL.is_dir(), reason=f"published measurements are not at {REAL}")
def test_the_real_measurements_are_all_read() -> None:
    rows = {data.name: data.rows for data in load([REAL])}
    pmem = [row for row in rows["optane-study"] if row.medium == "pmem"]
    assert (len(rows["optane-study"]), len(pmem)) == (714, 525)
    # 294 bandwidths and 120 chains, the latter with a rate and a latency each.
    assert len(rows["perma-bench"]) == 294 + 2 * 120
    assert {row.use for set_rows in rows.values() for row in set_rows} == {"calibration"}
