"""Prices and the Pareto front."""

from pathlib import Path

import pandas as pd
import pytest

import pmsim
from pmsim import Scenario
from pmsim.capacity import TIERS, cost_usd, load_prices, pareto_front
from pmsim.errors import ConfigError
from pmsim.plot_spec import Plot
from pmsim.points import points_of
from pmsim.resolve import resolved_scenario

GOOD = (
    '[dram]\nusd_per_gb = 10\nyear = 2020\nsource = "x"\n[pmem]\nusd_per_gb = 4.5\nyear = 2020\nsource = "x"\n'
)
SSD = '[ssd]\nusd_per_gb = 0.5\nyear = 2020\nsource = "x"\n'

WITH_DRIVE = {"base": "tum-6212u", "block_device": "nvme-p4510"}
TRIPLED = [(tier, 3 * price.usd_per_gb) for tier, price in load_prices().items()]


def test_every_shipped_price_has_a_year_and_a_source_and_tiers_are_in_order() -> None:
    prices = load_prices()
    assert set(prices) == set(TIERS)
    assert prices["dram"].usd_per_gb > prices["pmem"].usd_per_gb > prices["ssd"].usd_per_gb > 0
    assert all(2000 < price.year < 2100 and price.source for price in prices.values())


def test_cost_adds_up_over_tiers(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(GOOD + SSD)
    assert cost_usd(10**9, 2 * 10**9, 4 * 10**9, load_prices(file)) == 10 + 9 + 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD, "ssd: is missing"),
        (GOOD + SSD + "[tape]\n", "tape: unknown tier"),
        (GOOD + SSD.replace("0.5", "-1"), "ssd.usd_per_gb: is not a price"),
        (GOOD + SSD.replace("0.5", "nan"), "ssd.usd_per_gb: is not a price"),
        (GOOD + SSD.replace("0.5", "inf"), "ssd.usd_per_gb: is not a price"),
        (GOOD + SSD.replace("usd_per_gb", "eur_per_gb"), "ssd.eur_per_gb: unknown key"),
        (GOOD + SSD.replace("year = 2020\n", ""), "ssd: a price needs a year and a source"),
    ],
)
def test_bad_prices_are_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"prices\.toml") as raised:
        load_prices(file)
    assert message in str(raised.value)


def test_the_front_holds_what_nothing_beats() -> None:
    frame = pd.DataFrame(
        {
            "workload": ["a", "a", "a", "a", "b", "a"],
            "cost_usd": [10, 20, 20, 30, 99, 5],
            "transactions_per_s": [100.0, 200, 150, 200, 1, float("nan")],
        },
        index=[5, 6, 7, 8, 9, 10],
    )
    assert list(pareto_front(frame, by=["workload"])) == [True, True, False, False, True, False]
    # Without workloads apart, the expensive and slow row is beaten.
    assert not pareto_front(frame).loc[9]


def test_equal_rows_do_not_beat_each_other() -> None:
    frame = pd.DataFrame({"cost_usd": [1, 1], "transactions_per_s": [5.0, 5.0]})
    assert list(pareto_front(frame)) == [True, True]


def test_an_expander_made_of_dram_has_its_price() -> None:
    parameters = {"scale": "1/64", "dram_capacity": "1 GB", "pmem_capacity": "10 GB", "ssd_capacity": "0 B"}
    parameters |= {"log_device": "none"}
    platforms = [
        "tum-6212u",
        "spr-cxl",
        {"base": "spr-cxl", "name": "derived", "pmem": {"buffer_latency": "250 ns"}},
    ]
    points = points_of(
        Scenario(kind="oltp", platform="spr-cxl", parameters=parameters, sweep={"platform": platforms})
    )
    optane, expander, derived = (point.columns["cost_usd"] for point in points)
    prices = {tier: price.usd_per_gb for tier, price in load_prices().items()}
    assert optane == pytest.approx(prices["dram"] + 10 * prices["pmem"])
    assert expander == derived == pytest.approx(11 * prices["dram"])


def test_the_log_is_paid_for_on_the_tier_that_it_is_on() -> None:
    sizes = {"dram_capacity": "1 GB", "pmem_capacity": "10 GB", "ssd_capacity": "50 GB", "log_size": "2 GB"}
    prices = {tier: price.usd_per_gb for tier, price in load_prices().items()}
    pages = prices["dram"] + 10 * prices["pmem"] + 50 * prices["ssd"]
    for device, log in (("pmem", 2 * prices["pmem"]), ("ssd", 2 * prices["ssd"]), ("unwritten", 0)):
        parameters = sizes | {"log_device": device}
        (point,) = points_of(Scenario(kind="oltp", platform=WITH_DRIVE, parameters=parameters))
        assert point.columns["cost_usd"] == pytest.approx(pages + log)
    served = {name: size for name, size in sizes.items() if name != "log_size"} | {"service": "engine"}
    (point,) = points_of(Scenario(kind="system", platform=WITH_DRIVE, parameters=served))
    assert point.columns["cost_usd"] == pytest.approx(pages)


@pytest.mark.parametrize("kind", ["oltp", "restart", "system"])
@pytest.mark.parametrize(("ssd", "tier"), [("0 B", "pmem"), ("50 GB", "ssd")])
def test_the_checkpoint_image_of_main_memory_is_paid_for(kind: str, ssd: str, tier: str) -> None:
    sizes = {"dram_capacity": "3 GB", "pmem_capacity": "0 B", "ssd_capacity": ssd, "engine": "main-memory"}
    more = {"service": "engine"} if kind == "system" else {"log_device": "pmem", "log_size": "1 GB"}
    (point,) = points_of(Scenario(kind=kind, platform=WITH_DRIVE, parameters=sizes | more))
    prices = {tier: price.usd_per_gb for tier, price in load_prices().items()}
    pages = 3 * prices["dram"] + (50 * prices["ssd"] if ssd != "0 B" else 0)
    log = 0 if kind == "system" else prices["pmem"]
    assert point.columns["cost_usd"] == pytest.approx(pages + log + 3 * prices[tier])


def test_the_front_of_two_results_below_each_other_is_that_of_all_their_rows() -> None:
    one = pd.DataFrame({"cost_usd": [1, 2, 3], "transactions_per_s": [10, 20, 15]})
    other = pd.DataFrame({"cost_usd": [1, 2, 3], "transactions_per_s": [5, 25, 26]})
    both = pd.concat([one, other])
    assert both.index.tolist() == [0, 1, 2, 0, 1, 2]
    front = pareto_front(both)
    assert front.tolist() == [True, False, False, False, True, True]
    assert front.index.equals(both.index)


def test_rows_without_a_value_in_a_parting_column_have_a_front_of_their_own() -> None:
    frame = pd.DataFrame(
        {"cost_usd": [1, 2, 1, 2], "transactions_per_s": [9, 8, 7, 6], "dimms": [6, 6, None, None]}
    )
    assert pareto_front(frame, by=["dimms"]).tolist() == [True, False, True, False]


def test_what_has_no_number_is_not_on_the_front_and_words_are_refused() -> None:
    columns = {"cost_usd": [1, 2], "transactions_per_s": [None, 5.0], "engine": ["a", "b"]}
    frame = pd.DataFrame(columns, dtype=object)
    assert pareto_front(frame).tolist() == [False, True]
    with pytest.raises(ConfigError, match="pareto_front: column 'engine' has words; choose one of numbers"):
        pareto_front(frame, maximise=["engine"])
    with pytest.raises(ConfigError, match="pareto_front: minimise: 'cost_usd' is not a list of texts"):
        pareto_front(frame, minimise="cost_usd")


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(ConfigError, match="unknown column 'cost'"):
        pareto_front(pd.DataFrame({"transactions_per_s": [1.0]}), minimise=["cost"])


def test_prices_of_ones_own_change_the_cost_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    row = '[{}]\nusd_per_gb = {}\nyear = 2026\nsource = "a vendor"\n'
    file.write_text("".join(row.format(tier, usd) for tier, usd in TRIPLED))
    small = Scenario(
        kind="oltp",
        platform="sep-e5-4620v2",
        parameters={"data_size": "1 GiB", "scale": "1/64", "operations": 200, "warmup": 200},
        sweep={"prices": ["pmsim", str(file)]},
        plot=Plot(x="cost_usd", y="transactions_per_s", front=["prices"]),
    )
    result = pmsim.run(small, jobs=1)
    ours, theirs = result.frame.to_dict("records")
    assert theirs["cost_usd"] == pytest.approx(3 * ours["cost_usd"])
    assert (ours["prices"], theirs["prices"]) == ("pmsim", str(file))
    assert (theirs["seed"], theirs["configuration"]) == (ours["seed"], ours["configuration"])
    assert theirs["transactions_per_s"] == ours["transactions_per_s"]
    assert list(result.front()["prices"]) == ["pmsim"]
    alone = small.model_copy(update={"sweep": {}, "parameters": {**small.parameters, "prices": str(file)}})
    assert resolved_scenario(alone, points_of(alone)).parameters["prices"] == str(file)
    with pytest.raises(ConfigError, match=r"^sweep\.prices: .*nowhere\.toml: no such file"):
        points_of(small.model_copy(update={"sweep": {"prices": ["nowhere.toml"]}}))


def test_the_front_of_no_rows_is_empty() -> None:
    frame = pd.DataFrame({"cost_usd": [1.0], "transactions_per_s": [2.0]})
    nothing = frame[:0]
    assert nothing[pareto_front(nothing)].equals(nothing)
    assert nothing[pareto_front(nothing, by=["cost_usd"])].equals(nothing)
