"""Changes made one at a time: which points they make, and what is said about their effects."""

import math
from typing import Any

import pandas as pd
import pytest

import pmsim
from pmsim import ConfigError, Scenario, run
from pmsim.cli import main
from pmsim.effects import AFTER, BEFORE, EFFECT, HIGH, LOW, effects
from pmsim.overrides import with_overrides
from pmsim.plots.effects import effects_figure
from pmsim.points import points_of
from pmsim.resolve import resolved_scenario
from pmsim.variations import AS_IT_IS, CHANGED

LATENCY = "platform.pmem.media_read_latency"
NO_WALKS = {
    "label": "no walks",
    "set": {"platform": {"tlb": {"page_size": "1 GiB", "dram_page_size": "1 GiB"}}},
}
TEXT = """
kind = "bandwidth"
name = "limits"
platform = "tum-6212u"
[parameters]
operation = "load"
region_size = "1 GiB"
[sweep]
threads = [1, 4]
[vary]
access_size = [64]
platform.pmem.media_read_latency = ["100 ns", "200 ns"]
[[variant]]
label = "as DRAM, one module"
[variant.set]
memory = "dram"
"platform.dram.read_burst" = "10 ns"
"""


def scenario(**changes: Any) -> Scenario:
    return Scenario(**{"kind": "bandwidth", "platform": "tum-6212u", **changes})


def test_each_point_of_the_sweep_is_followed_by_its_changes_one_at_a_time() -> None:
    points = points_of(Scenario.from_toml(TEXT))
    labels = [
        AS_IT_IS,
        "access_size = 64 B",
        "pmem.media_read_latency = 100 ns",
        "pmem.media_read_latency = 200 ns",
        "as DRAM, one module",
    ]
    assert [(point.columns["threads"], point.columns[CHANGED]) for point in points] == [
        (threads, label) for threads in (1, 4) for label in labels
    ]
    own = points[0].platform.value("pmem", "media_read_latency")
    assert [point.columns["access_size"] for point in points[:5]] == [256, 64, 256, 256, 256]
    assert [point.platform.value("pmem", "media_read_latency") for point in points[:5]] == [
        *(own, own, 100_000, 200_000, own)
    ]
    assert [point.columns["memory"] for point in points[:5]] == [*["pmem"] * 4, "dram"]
    assert [point.platform.value("dram", "read_burst") for point in points[3:5]][1] == 10_000
    assert [point.columns[f"{LATENCY}_ns"] for point in points[:4]] == [own / 1_000, own / 1_000, 100, 200]
    assert points[2].describe() == "threads = 1, changed = pmem.media_read_latency = 100 ns"


def test_a_change_starts_from_the_swept_machine() -> None:
    swept = scenario(sweep={"platform": ["tum-6212u", "ucsd-8260"]}, vary={"platform.core.window": [512]})
    points = points_of(swept)
    assert [point.columns["platform"] for point in points] == ["tum-6212u"] * 2 + ["ucsd-8260"] * 2
    assert [point.platform.value("core", "window") for point in points[1::2]] == [512, 512]


def test_a_scenario_with_changes_survives_text_and_resolution() -> None:
    given = Scenario.from_toml(TEXT)
    assert Scenario.from_toml(given.to_toml()) == given
    points = points_of(given)
    again = points_of(Scenario.from_toml(resolved_scenario(given, points).to_toml()))
    assert [point.configuration for point in again] == [point.configuration for point in points]


def test_set_makes_a_change() -> None:
    changed = with_overrides(scenario(), ["vary.threads=[4]", "vary.platform.core.window=[512]"])
    assert [change.label for change in changed.changes()] == ["threads = 4", "core.window = 512"]


@pytest.mark.parametrize(
    ("changes", "said", "remedy"),
    [
        ({"vary": {"thread": [1]}}, "vary.thread: unknown axis", "'threads'"),
        ({"vary": {"threads": []}}, "vary.threads: is empty", "at least one value"),
        ({"vary": {"threads": 4}}, "vary.threads: 4 is not a list", "write [a, b]"),
        ({"vary": {"threads": [4, 4]}}, "vary.threads: holds 4 twice", "remove one"),
        ({"vary": {"threads": [1]}}, "vary.threads: with 'threads = 1' the same is simulated", "remove it"),
        ({"vary": {"threads": [400]}}, "vary.threads: threads: 400 threads", "choose at most 48"),
        ({"vary": {"mode": "zip", "threads": [2]}}, "vary.mode: changes are made one at a time", "[sweep]"),
        ({"vary": {"platform": {}}}, "vary.platform: is empty", "remove it"),
        (
            {"vary": {LATENCY: ["1 s"]}},
            "vary.platform.pmem.media_read_latency: 1 s",
            "choose",
        ),
        (
            {"vary": {"threads": [2]}, "sweep": {"threads": [1, 4]}},
            "vary.threads: threads is also",
            "remove one",
        ),
        ({"variant": [{"set": {"threads": 2}}]}, "variant.1.label: missing", "add it"),
        ({"variant": [{"label": "a", "set": {}}]}, "variant.1.set", "at least 1"),
        (
            {"variant": [{"label": "a", "set": {"thread": 2}}]},
            "variant.1.set.thread: unknown axis",
            "'threads'",
        ),
        ({"variant": [NO_WALKS, NO_WALKS]}, "variant.1: the label 'no walks'", "choose another"),
        (
            {"variant": [{"label": AS_IT_IS, "set": {"threads": 2}}]},
            "variant.1: the label 'as it is'",
            "choose another",
        ),
        (
            {"vary": {"threads": [2]}, "plot": {"color": "threads"}},
            "plot.color: the figure of changes",
            "plot.x",
        ),
    ],
)
def test_a_change_that_cannot_be_is_refused_in_one_line(
    changes: dict[str, Any], said: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        points_of(scenario(**changes))
    message = str(refused.value)
    assert message.startswith(said)
    assert remedy in message
    assert "\n" not in message


def test_points_that_nothing_has_changed_are_called_what_the_scenario_says() -> None:
    given = scenario(variant=[{"label": "two", "set": {"threads": 2}}], unchanged="one")
    assert [point.columns[CHANGED] for point in points_of(given)] == ["one", "two"]
    with pytest.raises(ConfigError, match=r"variant\.1: the label 'one' stands for something else"):
        points_of(scenario(variant=[{"label": "one", "set": {"threads": 2}}], unchanged="one"))


def test_effects_compare_a_change_with_the_point_that_it_was_made_from() -> None:
    frame = pd.DataFrame(
        {
            "threads": [1, 1, 1, 4, 4, 8, 8, 8, 8],
            CHANGED: [AS_IT_IS, "a", "b", "a", "b", AS_IT_IS, "a", "b", "b"],
            "rate": [100.0, 110.0, 50.0, 7.0, 8.0, 10.0, 10.0, 1.0, 2.0],
        }
    )
    # The point as it is has failed with 4 threads; with 8, point b has two rows that differ.
    found = effects(frame, [0, 1, 2, 4, 5, 6, 7, 8, 8], "rate", ["threads"], 2)
    told = [tuple(None if value != value else value for value in row) for row in found.itertuples(index=False)]
    assert told == [
        (1, "b", 100.0, 50.0, -50.0),
        (1, "a", 100.0, 110.0, pytest.approx(10.0)),
        (4, "a", None, 7.0, None),
        (4, "b", None, 8.0, None),
        (8, "a", 10.0, 10.0, 0.0),
        (8, "b", 10.0, None, None),
    ]


def test_an_effect_has_an_interval_where_its_metric_has() -> None:
    frame = pd.DataFrame(
        {
            CHANGED: [AS_IT_IS, "certain", "chance", "unknown"],
            "rate": [100.0, 200.0, 101.0, 150.0],
            "rate_low": [99.0, 200.0, 98.0, math.nan],
            "rate_high": [102.0, 200.0, 103.0, math.nan],
        }
    )
    found = effects(frame, [0, 1, 2, 3], "rate", [], 3).set_index(CHANGED)
    # What is certain is as uncertain as what it is compared with, the other way round.
    assert found.loc["certain", LOW] == pytest.approx(100 * (200 / 102 - 1))
    assert found.loc["certain", HIGH] == pytest.approx(100 * (200 / 99 - 1))
    # Both deviations in quadrature, as logarithms.
    below = math.hypot(math.log(101 / 98), math.log(102 / 100))
    assert found.loc["chance", LOW] == pytest.approx(100 * (1.01 * math.exp(-below) - 1))
    assert found.loc["chance", LOW] < 0 < found.loc["chance", HIGH]
    assert found.loc["unknown", EFFECT] == pytest.approx(50)
    assert found.loc["unknown", [LOW, HIGH]].isna().all()
    labels = effects_figure(found.reset_index(), sweep=[], title="", metric="rate").data[0].text
    assert list(labels) == ["+100.0 ± 3.0 %", "+50.0 %", "+1.0 ± 2.9 %"]


@pytest.mark.parametrize(
    ("reach", "label"),
    [
        (0.12, "+28.5 ± 0.1 %"),
        (0.04, "+28.46 ± 0.04 %"),
        (0.004, "+28.456 ± 0.004 %"),
        (0.0004, "+28.5 ± 0.0 %"),
        (0.0, "+28.5 ± 0.0 %"),
    ],
)
def test_a_narrow_interval_is_told_with_the_decimals_that_it_needs(reach: float, label: str) -> None:
    effect = 28.4562
    row = {
        CHANGED: ["a"],
        BEFORE: [1.0],
        AFTER: [1.2],
        EFFECT: [effect],
        LOW: [effect - reach],
        HIGH: [effect + reach],
    }
    assert list(effects_figure(pd.DataFrame(row), sweep=[], title="", metric="rate").data[0].text) == [label]


def test_an_effect_is_that_of_two_runs_of_their_own() -> None:
    result = run(Scenario.from_toml(TEXT), jobs=1)
    compared = result.effects()
    assert len(compared) == 8
    row = compared[(compared["threads"] == 4) & (compared[CHANGED] == "pmem.media_read_latency = 100 ns")].iloc[
        0
    ]
    given = {"operation": "load", "region_size": "1 GiB", "threads": 4}
    seeds = result.frame[result.frame["threads"] == 4]["seed"]
    machines: list[Any] = ["tum-6212u", {"base": "tum-6212u", "pmem": {"media_read_latency": "100 ns"}}]
    before, after = (
        pmsim.simulate_point("bandwidth", machine, given, seed=int(seed))["bandwidth_gb_s"]
        for machine, seed in zip(machines, (seeds.iloc[0], seeds.iloc[2]), strict=True)
    )
    assert (row[BEFORE], row[AFTER]) == (before, after)
    assert row[EFFECT] == pytest.approx(100 * (after / before - 1))
    assert after > before
    for _, of_threads in compared.groupby("threads"):
        strength = of_threads[EFFECT].abs().tolist()
        assert strength == sorted(strength, reverse=True)


def test_the_figure_has_a_bar_for_each_effect_and_the_strongest_change_on_top() -> None:
    result = run(Scenario.from_toml(TEXT), jobs=1)
    figure = result.figure()
    assert [trace.name for trace in figure.data] == ["threads 1", "threads 4"]
    assert all(trace.orientation == "h" and len(trace.x) == 4 for trace in figure.data)
    order = list(figure.layout.yaxis.categoryarray)
    assert figure.layout.yaxis.autorange == "reversed"
    strength = result.effects().groupby(CHANGED)[EFFECT].apply(lambda effect: effect.abs().max())
    assert order == list(strength.sort_values(ascending=False).index)
    assert figure.layout.xaxis.title.text == "change of: bandwidth [%]"


@pytest.mark.parametrize(("effects_percent", "wide"), [([10.0, 5.0], 1), ([-10.0, -5.0], 0)])
def test_the_axis_of_effects_has_room_for_labels_where_bars_are(
    effects_percent: list[float], wide: int
) -> None:
    rows = {CHANGED: ["a", "b"], BEFORE: [1.0] * 2, AFTER: [1.0] * 2, EFFECT: effects_percent}
    figure = effects_figure(pd.DataFrame(rows), sweep=[], title="", metric="rate")
    low, high = figure.layout.xaxis.range
    rooms = [min(0.0, *effects_percent) - low, high - max(0.0, *effects_percent)]
    assert rooms[wide] > 1.5  # of 10 that the longest bar has: fifteen characters of it
    assert 0 < rooms[1 - wide] < 0.5


def test_effects_that_would_hide_the_others_are_drawn_as_factors() -> None:
    rows = {CHANGED: ["a", "b"], BEFORE: [1.0, 1.0], AFTER: [40.0, 0.5], EFFECT: [3900.0, -50.0]}
    figure = effects_figure(pd.DataFrame(rows), sweep=[], title="t", metric="rate")
    (bars,) = figure.data
    assert [bars.base + x for x in bars.x] == [40.0, 0.5]
    assert list(bars.text) == ["40x", "0.5x"]
    ends = {LOW: [3800.0, -60.0], HIGH: [4000.0, -40.0]}
    figure = effects_figure(pd.DataFrame(rows | ends), sweep=[], title="t", metric="rate")
    assert list(figure.data[0].text) == ["40 ± 1x", "0.5 ± 0.1x"]
    assert figure.layout.xaxis.type == "log"
    assert figure.layout.xaxis.title.text == "rate: then over as it is"
    low, high = figure.layout.xaxis.range
    assert low < math.log10(0.5)
    assert high > math.log10(40)


def test_the_command_says_what_each_change_does(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "limits.toml").write_text(TEXT)
    assert main(["run", str(tmp_path / "limits.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    told = capsys.readouterr().out
    assert "one change at a time" in told
    assert "10 of 10 points" in told
    assert (
        main(["run", str(tmp_path / "limits.toml"), "--set", "threads=1", "--set", 'vary.dimms=["all", 1]'])
        == 2
    )
    assert "vary.dimms: with 'dimms = all' the same is simulated" in capsys.readouterr().err
    saved = pd.read_parquet(tmp_path / "out" / "results.parquet")
    assert list(saved[CHANGED]).count(AS_IT_IS) == 2
    assert "<h2>One change at a time</h2>" in (tmp_path / "out" / "report.html").read_text()


def test_the_metric_may_be_another_and_a_size_is_told_as_it_is_written(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "limits.toml").write_text(
        TEXT.replace("threads = [1, 4]", 'region_size = ["1 GiB"]').replace('region_size = "1 GiB"\n[', "[")
        + '[plot]\ny = "read_amplification"\n'
    )
    (tmp_path / "one.toml").write_text(
        'kind = "bandwidth"\nplatform = "tum-6212u"\nmetrics = ["simulated_ops"]\n[vary]\nthreads = [2]\n'
    )
    assert main(["run", str(tmp_path / "limits.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    assert "1 GiB        access_size = 64 B" in capsys.readouterr().out
    assert main(["run", str(tmp_path / "one.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    assert "threads = 2" in capsys.readouterr().out


def test_a_kind_whose_rows_are_a_curve_keeps_its_figure() -> None:
    result = run(
        Scenario(
            kind="restart",
            platform="sep-e5-4620v2",
            parameters={
                **{"workload": "ycsb-ro", "data_size": "64 MiB", "scale": "1/16"},
                **{"dram_capacity": "128 MiB", "pmem_capacity": "256 MiB", "log_size": "16 MiB"},
                **{"warmup": 2_000, "operations": 5_000, "windows": 5},
            },
            vary={"platform.core.window": [32]},
        ),
        jobs=1,
    )
    assert result.effects().empty
    figure = result.figure()
    assert [len(trace.x) for trace in figure.data] == [5, 5]
    assert not any(math.isnan(y) for trace in figure.data for y in trace.y)
