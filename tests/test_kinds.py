"""Kinds: the documented names, and metrics that follow from what was simulated."""

import math
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import ConfigError, Scenario, _native
from pmsim.kinds import COUNTER_PREFIX, KINDS, find_kind
from pmsim.kinds.counters import ENGINE_COUNTERS, ENGINE_PREFIX
from pmsim.kinds.intervals import TAILS

PLAIN_LATENCIES = {"latency_ns", *(f"latency_{part}_ns" for part in ("p50", "p95", "p99", "p999", "max"))}


def with_ends(*names: str) -> set[str]:
    return {name + end for name in names for end in ("", "_low", "_high")}


LATENCIES = PLAIN_LATENCIES | with_ends("latency_ns", "latency_p99_ns", "latency_p999_ns")
COMMON = {"simulated_ops", "out_of_range_count"}
AMPLIFICATION = {"read_amplification", "write_amplification"}
BLOCK = with_ends("ops_per_s") | {"barriers_per_op", "lines_written_per_op", "media_blocks_written_per_op"}
PLATFORM = {"base": "tum-6212u", "block_device": "nvme-p4510"}
ENGINE = {
    *("engine", "cache_line_grained", "mini_pages", "pointer_swizzling", "leaf_layout", "admission_entries"),
    *("migration_dr", "migration_dw", "migration_nr", "migration_nw", "page_size", "workload", "data_size"),
    *("requests", "row_size"),
    *(
        "warehouses",
        "update_percent",
        "scan_length",
        "scan_hint",
        "scan_prefetch",
        "row_cycles",
        "access",
        "loading",
        "zipf",
        "fill_factor",
        "page_write",
        "dram_capacity",
    ),
    *("pmem_capacity", "ssd_capacity", "log_device", "log_algorithm", "log_layout", "log_size", "cpu_cycles"),
    *(
        "transaction_cycles",
        "library_cycles",
        "system_call_cycles",
        "system_call_copies",
        "threads",
        "latches",
        "fixes",
        "locks",
        "logs",
        "commits",
        "cleaning",
        "scale",
        "scale_caches",
        "warmup",
        "operations",
        "prices",
    ),
}
PER_TX = {
    *("page_fixes", "page_table_lookups", "swizzled_fixes", "dram_misses", "lines_pmem_to_dram"),
    *("pages_pmem_to_dram", "pages_ssd_to_dram", "lines_dram_to_pmem", "pages_dram_to_pmem", "pages_admitted"),
    *("pages_denied", "pages_to_ssd", "evictions_dram", "evictions_pmem", "mini_pages", "promotions"),
    *("swizzles", "unswizzles", "log_bytes", "checkpoints", "pmem_lines_read", "pmem_lines_written"),
    *("ssd_reads", "ssd_writes", "pages_ssd_to_pmem"),
}
WEAR = {"writes", "lines", "maximum", "p50", "p90", "p99", "p999"}
#: Kind: parameters and metrics as they are documented.
DOCUMENTED: dict[str, tuple[set[str], set[str]]] = {
    "bandwidth": (
        {
            "memory",
            "operation",
            "pattern",
            "access_size",
            "stride",
            "alignment",
            "threads",
            "dimms",
            "prefetcher",
            "page_size",
        }
        | {"shared_region", "region_size", "fence_every", "flush_every", "address_list", "instructions"},
        with_ends("bandwidth_gb_s") | AMPLIFICATION,
    ),
    "contention": (
        {"operation", "threads", "objects", "read_percent", "readers", "lines", "work"},
        with_ends("ops_per_s")
        | {"core_transfers_per_op", "latch_waits_per_op", "latch_restarts_per_op"}
        | LATENCIES,
    ),
    "latency": ({"memory", "operation", "pattern", "region_size", "mode"}, LATENCIES),
    "persist": (
        {"memory", "operation", "access_size", "fence_every", "threads", "dimms", "region_size"},
        with_ends("bandwidth_gb_s") | LATENCIES | AMPLIFICATION,
    ),
    "operations": ({"operations", "threads", "region_size"}, with_ends("operations_per_s") | LATENCIES),
    "mixed": (
        {"groups", "prefetcher", "page_size", "region_size"},
        with_ends(
            *(
                f"group_{number}_{name}"
                for number in (1, 2)
                for name in ("bandwidth_gb_s", "alone_gb_s", "slowdown")
            )
        ),
    ),
    "page-flush": (
        {"technique", "dirty_lines", "threads", "page_size", "pages", "spare_slots"}
        | {"order", "write", "barriers", "prefetcher"},
        with_ends("ops_per_s", "bandwidth_gb_s")
        | {"barriers_per_op", "fences_per_op", "lines_written_per_op", "media_blocks_written_per_op"}
        | LATENCIES,
    ),
    "interleave": (
        {"operation", "interleave", "group_size", "fence", "first_flush", "memory", "region_size", "threads"}
        | {"cpu_cycles"},
        with_ends("ops_per_s")
        | {"speedup", "time_per_op_ns", "suspensions_per_op"}
        | {"barriers_per_op", "lines_written_per_op", "media_blocks_written_per_op"}
        | LATENCIES,
    ),
    "node": (
        {"operation", "layout", "node_size", "header", "entries", "position", "order", "persist", "split"}
        | {"allocation", "direction", "iterate_by", "chain", "depth", "inner_memory", "memory", "region_size"}
        | {"library_cycles"},
        {"entries", "bytes_per_pair", "bytes_changed_per_op", "lines_written_per_op"} | LATENCIES,
    ),
    "sorted-run": (
        {"operation", "run_size", "c0", "failure_atomicity", "algorithm", "target", "duplicates", "memory"}
        | {"library_cycles"},
        {"bytes_written", "lines_written_per_op", "barriers_per_op", "media_blocks_written_per_op"} | LATENCIES,
    ),
    "block": (
        {"operation", "pattern", "access_size", "threads", "region_size"},
        with_ends("operations_per_s", "bandwidth_gb_s") | LATENCIES,
    ),
    "in-place": (
        {"algorithm", "update_size", "operation", "pattern", "memory", "region_size", "threads"}
        | {"extra_instructions"},
        BLOCK | LATENCIES,
    ),
    "log": (
        {"algorithm", "layout", "entry_size", "group_commit", "dancing_fields", "threads", "memory", "log_size"}
        | {"cpu_cycles"},
        {"log_bytes_per_entry"} | BLOCK | LATENCIES,
    ),
    "oltp": (
        ENGINE | {"memory_mode"} | {"wear", "rows", "check", "breakdown"},
        {"transactions_per_s", "transactions_per_s_low", "transactions_per_s_high", "fits", "dram_hit_ratio"}
        | {"pages_time_share", "log_time_share", "locks_time_share", "pmem_writes_per_day"}
        | {"core_transfers_per_tx", "latch_waits_per_tx", "latch_restarts_per_tx", "latch_wait_share"}
        | {"commits_per_group"}
        | {
            "table_rows",
            "lines_per_cold_read",
            "rolled_back_ratio",
            "warmup_transactions",
            "steady",
            "log_reused",
        }
        | {f"{name}_per_tx" for name in PER_TX}
        | {f"wear_{name}" for name in WEAR}
        | LATENCIES,
    ),
    "restart": (
        ENGINE | {"end", "windows"},
        {"time_ms", "transactions_per_s", "recovery_ms", "time_to_peak_ms", "peak_transactions_per_s", "fits"}
        | {"warmup_transactions", "steady", "window_latency_p99_ns"}
        | PLAIN_LATENCIES,
    ),
    "system": (
        {"study", "service", "workers", "load_percent", "rate", "requests", "algorithm", "entry_size"}
        | {"log_size", "rows", "row_size", "scanners", "scan_rows", "engine", "dram_capacity", "pmem_capacity"}
        | {"update_percent", "group_size", "timeout", "technique", "background", "writers", "page_size"}
        | {"pages", "dirty_lines", "dirty_limit", "dirty_target", "crash_at", "restart_after", "duration"}
        | {"windows", "segment", "ssd_capacity", "recording", "speed_percent", "prices", "log_device"}
        | {"commits", "cleaning", "zipf", "warmup", "workload", "warehouses", "cpu_cycles"}
        | {"transaction_cycles"},
        {"offered_per_s", "throughput_per_s", "saturation_per_s", "waited_ns", "mean_in_system"}
        | {"in_system_at_end", "keeps_up", "steady"}
        | LATENCIES,
    ),
    "trace": (
        {"file"},
        {"time_ms", "operations_per_s", "bandwidth_gb_s", "dram_read_bytes", "dram_written_bytes"}
        | {"pmem_read_bytes", "pmem_written_bytes"}
        | PLAIN_LATENCIES,
    ),
}
#: Kinds that decide themselves how long they measure.
LENGTH = set(DOCUMENTED) - {"oltp", "restart", "system", "trace"}
SMALL_ENGINE = {"engine": "main-memory", "data_size": "64 MiB", "operations": 400, "warmup": 400}
SMALL_TIERS = {"dram_bytes": 2**26, "pmem_bytes": 2**26, "ssd_bytes": 2**26, "log_bytes": 2**22}
QUICK: dict[str, dict[str, Any]] = {
    "contention": {},
    "page-flush": {"pages": 64},
    "mixed": {
        "groups": [{"task": "read", "threads": 2}, {"task": "write", "threads": 1}],
        "region_size": "64 MiB",
    },
    "log": {},
    "sorted-run": {},
    "oltp": SMALL_ENGINE | {"breakdown": True, "operations": 800_000},  # for intervals of tails
    "restart": SMALL_ENGINE | {"engine": "nvm-direct"},
    "system": {"requests": 50_000},
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_has_the_documented_names_and_all_its_metrics(kind: str, tmp_path: Path) -> None:
    assert kind in DOCUMENTED, "write its names into DOCUMENTED: they are an interface"
    parameters, metrics = DOCUMENTED[kind]
    if kind in LENGTH:
        parameters, metrics = parameters | {"length"}, metrics | {"steady"}
    given = QUICK.get(kind, {"region_size": "64 MiB"})
    if kind == "trace":
        recorded = Scenario(kind="log", platform=PLATFORM, parameters=QUICK["log"])
        pmsim.trace.record(recorded, tmp_path / "a.trace")
        given = {"file": str(tmp_path / "a.trace")}
    assert set(find_kind(kind).parameter_model.model_fields) == parameters
    measured = pmsim.simulate_point(kind, PLATFORM, given)
    assert {name for name in measured if not name.startswith(COUNTER_PREFIX)} == metrics | COMMON
    assert measured["simulated_ops"] > 0
    unknown = {name for name, value in measured.items() if not math.isfinite(value)}
    # Too few operations are slower for an interval; two kinds run long enough here for all of them.
    # Readers log nothing, and no transaction ends while an engine recovers.
    unknown -= {"oltp": {"log_reused"}, "restart": {"counter.window.0.window_latency_p99_ns"}}.get(kind, set())
    assert unknown <= (with_ends(*TAILS) - set(TAILS) if kind not in ("oltp", "system") else set())
    assert {name.replace("_low", "_high") for name in unknown} <= unknown
    counted = {name for name in measured if name.startswith(COUNTER_PREFIX) and ".window." not in name}
    foreign = set(find_kind(kind).counters()) - counted
    assert counted <= set(find_kind(kind).counters())
    assert all(name.startswith(ENGINE_PREFIX) for name in foreign), "promised, and in no result"


def test_every_counter_of_an_engine_is_declared_with_its_meaning() -> None:
    declared: set[str] = set()
    for name in _native.engines():
        engine = _native.Engine(name, options=SMALL_TIERS)
        engine.load("rows", key_bytes=8, payload_bytes=8, rows=[])
        declared |= set(engine.counters())
    assert declared == set(ENGINE_COUNTERS)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_counter_that_nobody_counts_is_refused_before_anything_runs(kind: str) -> None:
    known = find_kind(kind)
    with pytest.raises(
        ConfigError, match=r"unknown counter 'counter\.tlb_walk'.* did you mean 'counter\.tlb_w"
    ):
        known.check_metric("counter.tlb_walk", known.parameters({}))
    known.check_metric("counter.tlb_walks", known.parameters({}))


def test_time_and_bytes_of_a_run_are_counters() -> None:
    measured = pmsim.simulate_point("bandwidth", PLATFORM, {"access_size": 256, "region_size": "64 MiB"})
    assert measured["counter.user_bytes"] == measured["simulated_ops"] * 256
    per_s = measured["counter.user_bytes"] * 1e12 / measured["counter.elapsed_ps"]
    assert measured["bandwidth_gb_s"] == pytest.approx(per_s / 1e9)


def test_a_point_is_a_pure_function_of_its_seed() -> None:
    first, again, other = (pmsim.simulate_point("bandwidth", "tum-6212u", {}, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_amplification_is_media_bytes_over_user_bytes() -> None:
    measured = pmsim.simulate_point("bandwidth", "tum-6212u", {"operation": "ntstore", "access_size": 64})
    user_bytes = measured["simulated_ops"] * 64
    expected = measured["counter.pmem_media_write_blocks"] * 256 / user_bytes
    assert measured["write_amplification"] == pytest.approx(expected, rel=0.01)
    assert 3 < measured["write_amplification"] <= 4.1


def test_bandwidth_counts_powers_of_ten() -> None:
    measured = pmsim.simulate_point("persist", "tum-6212u", {"access_size": 256})
    # One thread, one persist after the other: bandwidth and latency are two views of one number.
    assert measured["bandwidth_gb_s"] == pytest.approx(256 / measured["latency_ns"], rel=0.05)


def test_the_slowdown_of_a_group_is_its_bandwidth_alone_over_that_beside_the_others() -> None:
    measured = pmsim.simulate_point("mixed", "tum-6212u", QUICK["mixed"])
    for number in (1, 2):
        alone, beside = measured[f"group_{number}_alone_gb_s"], measured[f"group_{number}_bandwidth_gb_s"]
        assert measured[f"group_{number}_slowdown"] == pytest.approx(alone / beside)


def test_a_single_group_is_not_slowed_down() -> None:
    alone = {"groups": [{"task": "read", "threads": 2}], "region_size": "64 MiB"}
    measured = pmsim.simulate_point("mixed", "tum-6212u", alone)
    assert {measured[f"group_1_slowdown{end}"] for end in ("", "_low", "_high")} == {1.0}


def test_the_prefetcher_and_the_page_size_reach_the_machine() -> None:
    given = {"pattern": "sequential", "region_size": "1 GiB"}
    on = pmsim.simulate_point("bandwidth", "tum-6212u", given | {"prefetcher": True})
    off = pmsim.simulate_point("bandwidth", "tum-6212u", given | {"prefetcher": False})
    assert on["counter.prefetches"] > 0
    assert off["counter.prefetches"] == 0
    small = pmsim.simulate_point("bandwidth", "tum-6212u", {"page_size": "4 KiB"})
    large = pmsim.simulate_point("bandwidth", "tum-6212u", {"page_size": "1 GiB"})
    assert small["counter.tlb_walks"] > 10 * large["counter.tlb_walks"]


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("bandwidth", ["read_bandwidth", "write_bandwidth", "copy_bandwidth"])
def test_a_device_that_takes_longer_than_virtual_time_is_refused(bandwidth: str, threads: int) -> None:
    machine = {**PLATFORM, "block": {bandwidth: "1 B/s"}}
    operation = "write+flush" if bandwidth == "write_bandwidth" else "read"
    with pytest.raises(ConfigError, match=r"days of virtual time.*; choose higher bandwidths"):
        pmsim.simulate_point("block", machine, {"operation": operation, "threads": threads})


def test_persists_by_each_flush_are_those_of_kind_latency() -> None:
    """One line, loaded before its time is taken: the same in both kinds, but for where the lines lie."""
    for operation in ("store+clwb", "store+clflushopt", "store+clflush"):
        given = {"operation": operation, "region_size": "1 GiB"}
        persisted = pmsim.simulate_point("persist", "tum-6212u", given)
        alone = pmsim.simulate_point("latency", "tum-6212u", given | {"pattern": "sequential"})
        assert persisted["latency_p50_ns"] == pytest.approx(alone["latency_p50_ns"], rel=0.02)
    many = {"region_size": "1 GiB", "access_size": 4096}
    clflush, clflushopt = (
        pmsim.simulate_point("persist", "tum-6212u", many | {"operation": f"store+{flush}"})
        for flush in ("clflush", "clflushopt")
    )
    assert clflush["latency_ns"] > 2 * clflushopt["latency_ns"]  # each waits for the one before it


def test_modules_matter_to_main_memory_whatever_it_is_called() -> None:
    # What a place in DRAM holds at first is drawn from all lines that share it: of all 768 GB, many.
    small = {"dram": {"capacity": "16 MiB"}, "pmem": {"capacity": "1 GiB"}}
    machine = {"base": "tum-6212u", "controller": {"memory_mode": True}, **small}
    given = {"memory": "dram", "region_size": "128 MiB", "threads": 8}
    one, two = (pmsim.simulate_point("bandwidth", machine, given | {"dimms": dimms}) for dimms in (1, 2))
    assert one["bandwidth_gb_s"] < two["bandwidth_gb_s"]


@pytest.mark.parametrize("kind", ["latency", "bandwidth", "persist"])
def test_in_memory_mode_both_names_mean_main_memory(kind: str) -> None:
    machine = {"base": "tum-6212u", "controller": {"memory_mode": True}}
    # More than there is DRAM.
    found = [
        pmsim.simulate_point(kind, machine, {"memory": memory, "region_size": "400 GiB"})
        for memory in ("dram", "pmem")
    ]
    counters = [{name: row[name] for name in row if name.startswith(COUNTER_PREFIX)} for row in found]
    assert counters[0] == counters[1]
    assert counters[0]["counter.dram_write_lines"] > 0


def test_in_memory_mode_regions_of_both_names_share_main_memory() -> None:
    small = {"dram": {"capacity": "16 MiB"}, "pmem": {"capacity": "1 GiB"}}
    machine = {"base": "tum-6212u", "controller": {"memory_mode": True}, **small}
    groups = [{"task": "lookup", "memory": memory, "threads": 1} for memory in ("dram", "pmem")]
    with pytest.raises(ConfigError, match="for the regions of 2 groups"):
        pmsim.simulate_point("mixed", machine, {"groups": groups, "region_size": "640 MiB"})


def test_memory_mode_is_a_property_of_the_point() -> None:
    given = {"region_size": "64 MiB", "mode": "memory-mode"}
    assert pmsim.simulate_point("latency", "tum-6212u", given)["counter.memory_mode_hits"] > 0
    assert pmsim.simulate_point("latency", "tum-6212u", {"mode": "app-direct"})["counter.memory_mode_hits"] == 0


def test_a_figure_has_a_panel_per_facet_and_a_curve_per_colour() -> None:
    scenario = Scenario(
        kind="latency",
        platform="tum-6212u",
        sweep={
            "region_size": ["1 MiB", "64 MiB"],
            "pattern": ["sequential", "random"],
            "memory": ["dram", "pmem"],
        },
        plot={
            "overlay": [
                {
                    "label": "measured",
                    "citation": "A paper",
                    "points": [[2**20, 400]],
                    "where": {"memory": "pmem"},
                }
            ]
        },
    )
    figure = pmsim.run(scenario, jobs=1).figure()
    names = [trace.name for trace in figure.data]
    assert names == ["sequential", "random", "sequential", "random", "measured"]
    assert figure.layout.yaxis.title.text == "mean latency of an operation [ns]"
    assert [note.text for note in figure.layout.annotations] == ["DRAM", "PMem"]
    assert figure.layout.title.subtitle.text == (
        "Open markers: A paper<br>Error bars: 95 % confidence interval over batches of a run"
    )


@pytest.mark.parametrize("drive", ["nvme-p4510", "sata-s3700"])
def test_writes_to_an_ssd_are_what_its_medium_sustains_and_not_what_its_cache_takes(drive: str) -> None:
    machine = pmsim.load_platform({"base": "tum-6212u", "block_device": drive})
    sustained = machine.value("block", "units") * 1e12 / machine.value("block", "program_latency")
    found = pmsim.simulate_point("block", machine, {"operation": "write", "threads": 16})
    assert found["operations_per_s"] == pytest.approx(sustained, rel=0.1)
    assert found["operations_per_s"] < machine.value("block", "write_bandwidth") / 4096 / 2


def test_flushes_that_empty_no_cache_make_no_writes_faster() -> None:
    machine = pmsim.load_platform({"base": "tum-6212u", "block_device": "sata-s3700"})
    assert machine.value("block", "write_cache_durable")
    written, flushed = (
        pmsim.simulate_point("block", machine, {"operation": operation, "threads": 32})["operations_per_s"]
        for operation in ("write", "write+flush")
    )
    assert flushed <= 1.02 * written  # a long run of either


def test_the_latency_of_a_chain_lacks_the_wait_of_its_last_fence_and_says_so() -> None:
    (meaning,) = [metric.meaning for metric in find_kind("operations").metrics if metric.name == "latency_ns"]
    assert "without the wait of its last fence" in meaning
    read, persisted = (
        pmsim.simulate_point("operations", "tum-6212u", {"operations": chain})["latency_ns"]
        for chain in ("rp_64", "rp_64,wp_64_cache")
    )
    wait = pmsim.simulate_point("persist", "tum-6212u", {"operation": "store+clwb", "access_size": 64})[
        "latency_ns"
    ]
    assert read < persisted < read + 0.75 * wait
