"""Kind "system": transactions of YCSB and TPC-C that come when they come."""

import math
from typing import Any

import pytest

import pmsim
from pmsim import des
from pmsim.errors import ConfigError

PLATFORM = "tum-6212u"
TIERS = {"dram_capacity": "16 MiB", "pmem_capacity": "256 MiB"}
LOAD = {"service": "engine", "engine": "basic-nvm-bm", "workers": 2, "requests": 2_000, **TIERS}
TPCC = {"workload": "tpcc", "warehouses": 1}
YCSB = {"workload": "ycsb-a", "rows": 20_000, "zipf": 1.0}
SMALL = {"workload": "ycsb-a", "rows": 2_000, "engine": "nvm-direct"}


def point(**given: Any) -> dict[str, Any]:
    return pmsim.simulate_point("system", PLATFORM, LOAD | given)


def test_a_benchmark_is_served_at_the_rate_at_which_it_comes() -> None:
    idle, busy = (point(rate=rate, **YCSB) for rate in (2_000, 200_000))
    for found, rate in ((idle, 2_000), (busy, 200_000)):
        assert found["offered_per_s"] == rate
        assert found["throughput_per_s"] == pytest.approx(rate, rel=0.1)
        assert found["keeps_up"] == 1
    assert idle["waited_ns"] < busy["waited_ns"] < busy["latency_ns"]
    assert math.isnan(idle["saturation_per_s"])


@pytest.mark.parametrize("workload", ["ycsb-a", "ycsb-d"])
def test_ycsb_is_as_skewed_as_in_kind_oltp_unless_told_otherwise(workload: str) -> None:
    given = {"workload": workload, "rows": 20_000, "rate": 50_000, "requests": 500}
    by_itself, skewed, uniform = (point(**given, **zipf) for zipf in ({}, {"zipf": 1}, {"zipf": 0}))
    assert by_itself["latency_ns"] == skewed["latency_ns"]
    assert by_itself["latency_ns"] < 0.9 * uniform["latency_ns"]  # its popular rows are in DRAM


@pytest.mark.parametrize("given", [{"service": "table"}, {"service": "engine", "engine": "main-memory"}])
def test_single_rows_are_asked_for_uniformly_unless_told_otherwise(given: dict[str, Any]) -> None:
    kind = pmsim.kinds.find_kind("system")
    for asked, settled in (({}, 0.0), ({"zipf": "auto"}, 0.0), ({"zipf": 0.5}, 0.5)):
        prepared = kind.prepared(pmsim.load_platform(PLATFORM), given | asked)
        assert prepared.parameters.zipf == settled


def test_simpy_and_the_core_serve_a_benchmark_identically() -> None:
    def load(kind: type) -> Any:
        server = des.Server(des.Environment(), [("transactions", SMALL)], platform=PLATFORM, workers=3)
        tenant = des.Tenant("all", des.TraceDriven(list(range(300))), [des.Ask("transactions.next")], "1 s")
        return kind(server, [tenant], keep_log=True)

    native, through_simpy = load(des.NativeLoad), load(des.Load)
    native.finish()
    through_simpy.env.run()
    assert through_simpy.log == native.log
    assert len(native.log) == 300


def closed(part: tuple[str, dict[str, Any]], kind: str, transactions: int, seed: int = 1) -> des.Server:
    """Serve so many transactions, one after the other."""
    server = des.Server(des.Environment(), [part], platform=PLATFORM, workers=1, seed=seed)
    for _ in range(transactions):
        server.env.run(server.execute(kind))
    return server


def test_a_served_benchmark_is_that_of_kind_oltp() -> None:
    """Each comes after the answer to the last, so nothing of it runs ahead; and it begins with cold caches."""
    given = {"engine": "nvm-direct", "dram_capacity": 0, "pmem_capacity": "64 MiB", "log_size": "4 MiB"}
    server = closed(("transactions", given | YCSB), "transactions.next", 4_000)
    served = server.env.now / 4_000 / 1_000
    size = {"data_size": "28 MiB", "fill_factor": 0.7, "operations": 4_000, "warmup": 4_000}
    engine = {"engine": "nvm-direct", "pmem_capacity": "64 MiB", "log_size": "4 MiB", "dram_capacity": 0}
    measured = pmsim.simulate_point(
        "oltp", PLATFORM, engine | size | {"workload": "ycsb-a", "scale": 1, "ssd_capacity": 0}
    )
    assert measured["latency_ns"] < served < 1.3 * measured["latency_ns"]


def test_new_orders_that_name_an_unknown_item_are_rolled_back() -> None:
    tiers = {"engine": "main-memory", "dram_capacity": "192 MiB", "pmem_capacity": 0, "log_device": "pmem"}
    server = closed(("transactions", TPCC | tiers), "transactions.next", 2_000)
    # 1 % of the new orders, which are 45 % (TPC-C, clauses 2.4.1.4 and 5.2.3): nine in the mean.
    assert 1 <= server.facts()["transactions.rolled_back"] <= 25


def test_seeds_decide_what_a_benchmark_draws() -> None:
    part = ("transactions", SMALL)
    one, again, other = (closed(part, "transactions.next", 200, seed).env.now for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workload": "tpcc", "engine": "fptree"}, "workload: tpcc; fptree holds rows with a key"),
        ({"workload": "tpcc", "study": "restart"}, "workload: 'tpcc' keeps no ledger .*; choose rows"),
        ({"workload": "tpcc", "warehouses": 50}, "warehouses: 50 warehouses are .*; choose fewer warehouses"),
        ({"workload": "ycsb-b", "rows": 10**6}, "rows: 1000000 rows are .*; choose fewer rows"),
        ({"workload": "ycsb-z"}, "workload: 'ycsb-z' is not one of rows, ycsb-a"),
    ],
    ids=str,
)
def test_what_no_benchmark_can_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        point(**given)


@pytest.mark.parametrize(
    "given",
    [
        YCSB | {"row_size": 512},
        YCSB | {"update_percent": 10},
        {"workload": "tpcc", "rows": 100},
        {"workload": "tpcc", "zipf": 0.5},
        {"warehouses": 2},
        {"service": "table", "workload": "tpcc", "engine": "nvm-direct"},
    ],
    ids=str,
)
def test_a_parameter_that_a_benchmark_does_not_use_is_refused(given: dict[str, Any]) -> None:
    scenario = pmsim.Scenario(kind="system", platform=PLATFORM, parameters=LOAD | given)
    with pytest.raises(ConfigError, match="has no meaning for"):
        pmsim.run(scenario, jobs=1)


def test_a_benchmark_cannot_be_crashed() -> None:
    with pytest.raises(ConfigError, match="transactions: a benchmark keeps no ledger"):
        des.Server(des.Environment(), [("transactions", YCSB)], platform=PLATFORM, crash=True)
