"""``pmsim validate`` from end to end, with a made-up simulator."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from pmsim.cli import main
from pmsim.runner import Progress
from pmsim.validation import cli, summary
from pmsim.validation.loaders import load
from pmsim.validation.measures import Backend, Point, Runs
from pmsim.validation.report import with_range
from pmsim.validation.suite_files import load_suite
from pmsim.validation.summary import validate as run_validation

DATA = Path(__file__).parents[1] / "data"
SUITE = """
title = "Two numbers"
[sources.paper]
citation = "Somebody: Something, 2020"
[series.s]
platform = "tum-6212u"
kind = "latency"
metric = "latency_ns"
parameters = { memory = "dram" }
[[claim]]
id = "device-latency"
source = [{ ref = "paper", where = "Table 1" }]
setup = "one thread"
quantity = "latency"
kind = "absolute"
expected = EXPECTED
unit = "ns"
precision = "stated"
medium = "dram"
use = "calibration"
rule = "idle-or-peak"
measures.m = { point = "s" }
checks = [{ value = "m" }]
[[claim]]
id = "device-atomic"
source = [{ ref = "paper", where = "sec. 2" }]
setup = ""
quantity = "atomic unit"
kind = "exact"
expected = 8
unit = "B"
precision = "stated"
not_simulated = "tested elsewhere"
"""


def made_up(points: Sequence[Point], progress: Progress | None) -> list[dict[str, float] | str]:
    answers: list[dict[str, float] | str] = []
    for point in points:
        threads = point.parameters.get("threads", 1)
        groups = {f"group_{number}_bandwidth_gb_s": 3.0 * number for number in (1, 2)}
        rates = {"bandwidth_gb_s": 2.0 * threads, "operations_per_s": 1e6 * threads}
        answers.append({"latency_ns": 100.0 * threads, **rates, **groups})
    return answers


@pytest.fixture
def made_up_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "simulator", lambda **options: made_up)
    monkeypatch.delenv("COLUMNS", raising=False)


class Validate:
    """Runs the command and keeps what it wrote."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def __call__(self, *arguments: str, expected: float = 100) -> tuple[int, str]:
        suite = self._folder / "suite.toml"
        suite.write_text(SUITE.replace("EXPECTED", str(expected)))
        status = main(["validate", "--suite", str(suite), *arguments])
        written = self._capsys.readouterr()
        return status, written.out + written.err


@pytest.fixture
def validate(made_up_simulator: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Validate:
    return Validate(tmp_path, capsys)


def test_a_prediction_within_its_tolerance_exits_with_0(validate: Validate) -> None:
    status, output = validate()
    assert status == 0, output
    assert "claims of the publications alone" in output
    assert "1 pass, 1 not simulated; 1 runs" in output


def test_the_set_up_of_a_claim_is_shown_where_there_is_room(
    validate: Validate, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, output = validate()
    claim = next(line for line in output.splitlines() if line.startswith("device-latency"))
    assert claim.endswith("  one thread")
    monkeypatch.setenv("COLUMNS", "60")
    _, output = validate()
    assert "one thread" not in output
    assert "(a wider terminal also shows set-up)" in output


def test_a_claim_that_fails_stays_in_the_table_and_exits_with_1(validate: Validate) -> None:
    status, output = validate(expected=200)
    assert status == 1
    assert "device-latency" in output
    assert "-50.0 %" in output
    assert "1 fail" in output


def test_what_failed_is_said_below_the_table_with_its_tolerance(validate: Validate) -> None:
    _, output = validate(expected=200)
    assert "device-latency: latency: measured 200 ns; predicted 100 (tolerance 5 %)\n" in output
    assert "device-latency: " not in validate()[1]


ORDERINGS = """
[series.t]
platform = "tum-6212u"
kind = "persist"
metric = "latency_ns"
parameters = { threads = 2 }
[[claim]]
id = "device-order"
source = [{ ref = "paper", where = "Table 2" }]
setup = "one thread and two"
quantity = "latency"
kind = "ordering"
expected = "two threads take longer than one thread, and three longer than two"
unit = ""
precision = "qualitative"
rule = "ordering"
measures.one = { point = "s" }
measures.two = { point = "t" }
checks = [{ order = "one < two" }, { order = "two < one" }]
"""


def test_of_an_ordering_the_table_says_how_much_holds_and_the_lines_below_what_does_not(
    validate: Validate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SUITE", SUITE + ORDERINGS)
    status, output = validate()
    assert status == 1
    row, told = (line for line in output.splitlines() if line.startswith("device-order"))
    assert re.fullmatch(r"device-order +two threads take longer than one thread… +1/2 +fail +pre  .+", row)
    assert told.endswith("and three longer than two; predicted two 200, one 100")


@pytest.mark.parametrize("width", [None, 80, 160])
@pytest.mark.parametrize("suite", ["device", "blocks", "hymem"])
def test_every_claim_is_one_line_that_begins_with_its_whole_name(
    suite: str, width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(points: Sequence[Point], progress: Progress | None) -> list[dict[str, float] | str]:
        return ["too many"] * len(points)

    monkeypatch.setattr(cli, "simulator", lambda **options: refuses)
    if width is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(width))
    assert main(["validate", "--suite", suite]) == 1
    table = capsys.readouterr().out.split("\nFailed\n")[0]
    rows = [line for line in table.splitlines() if re.search(r" (error +(pre|cal)|not .*-)(  |$)", line)]
    assert [row.split()[0] for row in rows] == [claim.id for claim in load_suite(suite).claim]
    if width is not None:
        assert max(map(len, rows)) <= width


@pytest.mark.parametrize(
    "arguments",
    [
        ["--data", "absent"],
        ["--suite", "nonsense"],
        ["--optane-units", "imperial"],
        ["--optane-units", "binary"],  # of nothing that is given
        ["--jobs", "0"],
        ["--seeds", "0"],
        ["--seeds", "-3"],
        ["--seed", "x"],
    ],
)
def test_bad_input_exits_with_2_and_one_line(validate: Validate, arguments: list[str]) -> None:
    status, output = validate(*arguments)
    assert status == 2
    assert output.count("\n") == 1, output


def test_an_output_folder_that_is_a_file_exits_with_2(validate: Validate, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    status, output = validate("--out", str(tmp_path / "taken"))
    assert (status, output.count("\n")) == (2, 1)


def test_the_report_works_alone_and_the_table_has_every_row(validate: Validate, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, output = validate("--data", str(DATA), "--out", str(out))
    assert status == 0, output
    page = (out / "report.html").read_text()
    # A line with the numbers, and one over the whole width with set-up and source.
    assert '<tr id="device-latency" class="pass"><td class="name">device-latency</td><td>100 ns</td>' in page
    assert '<td class="about" colspan="7">latency. one thread. [paper, Table 1]</td>' in page
    assert "atomic unit. Not simulated: tested elsewhere. [paper, sec. 2]" in page
    assert "<p>[paper] Somebody: Something, 2020</p>" in page
    assert "1 pass, 1 not simulated." in page
    assert "optane-study: bandwidth [GB" in page
    assert '"ticktext":["0.1","0.2","0.5","1","2","5","10",' in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)
    frame = pd.read_parquet(out / "results.parquet")
    assert (frame["table"] == "claim").sum() == 2
    read = re.findall(r"(?:optane-study|perma-bench): (\d+) measurements", output)
    assert (frame["table"] == "measurement").sum() == sum(int(number) for number in read)
    row = frame[
        (frame["id"] == "optane-study: 04-bandwidth_thcount_optane") & (frame["measured_value"] == 12.5)
    ]
    assert row["error"].item() == pytest.approx(8.0 / 12.5 - 1)


def test_a_measurement_that_cannot_be_simulated_exits_with_1(
    validate: Validate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "AccessSize,Read,Write(ntstore),Write(clwb)\n64,1,1,1\n"
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "05-bandwidth_accesssize_dram.csv").write_text(table)

    def refuses(points: Sequence[Point], progress: Progress | None) -> list[dict[str, float] | str]:
        metrics = made_up(points, progress)
        return ["too many" if p.kind == "bandwidth" else m for p, m in zip(points, metrics, strict=True)]

    monkeypatch.setattr(cli, "simulator", lambda **options: refuses)
    status, output = validate("--data", str(tmp_path))
    assert status == 1
    assert "3 measurements could not be simulated" in output
    assert "too many" in output


def test_accuracy_is_given_by_set_use_and_medium(validate: Validate) -> None:
    output = validate("--data", str(DATA))[1]
    for group, medium, use in (
        ("claims", "all", "cal"),
        ("optane-study", "pmem", "cal"),
        ("optane-study", "dram", "cal"),
        ("optane-study", "pmem", "pre"),
        ("perma-bench", "all", "pre"),
    ):
        assert re.search(rf"^{group} +{medium} +{use} ", output, re.MULTILINE), (group, medium, use)


def seeded(seeds: list[int]) -> Callable[..., Backend]:
    """Return simulators whose results grow with their seed by a tenth, and that note it."""

    def simulator(*, seed: int, **options: object) -> Backend:
        seeds.append(seed)

        def run(points: Sequence[Point], progress: Progress | None) -> list[dict[str, float] | str]:
            scale = 1 + seed / 10
            answers = made_up(points, progress)
            return [
                answer if isinstance(answer, str) else {name: scale * value for name, value in answer.items()}
                for answer in answers
            ]

        return run

    return simulator


def test_with_several_seeds_medians_decide_and_the_share_of_the_seeds_is_shown(
    validate: Validate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(cli, "simulator", seeded(seeds))
    out = tmp_path / "out"
    # 100, 110 and 120 ns; 5 % about 115 ns hold the latter two.
    status, output = validate("--seeds", "3", "--out", str(out), expected=115)
    assert seeds == [0, 1, 2]
    assert status == 0
    assert re.search(r"110 \(100\.\.120\) +-4.3 % +pass 2/3 +cal  one thread$", output, re.MULTILINE)
    assert "3 runs" in output
    assert "Decided by chance, passing with some of the 3 seeds only: device-latency 2/3." in output
    page = (out / "report.html").read_text()
    assert "<b>Decided by chance</b>: device-latency 2/3." in page
    assert "<td>110</td><td>100..120</td>" in page
    assert '<td class="number">2/3</td></tr>' in page
    latency, atomic = pd.read_parquet(out / "results.parquet").itertuples()
    assert (latency.seeds, latency.seeds_passed, latency.spread) == (3, 2, "100..120")
    assert (latency.predicted_min, latency.predicted_max) == (100, 120)
    assert pd.isna(atomic.seeds)

    seeds.clear()
    status, output = validate("--seed", "1", "--seeds", "2", expected=115)
    assert seeds == [1, 2]
    assert status == 0
    assert "Decided by chance, passing with some of the 2 seeds only: none." in output
    # The median of two is their mean: 105 ns of 100 and 110.
    assert validate("--seeds", "2", expected=112)[0] == 1


def test_one_seed_says_what_it_said_before(validate: Validate, tmp_path: Path) -> None:
    texts, columns = [], []
    for arguments in ([], ["--seeds", "1"]):
        out = tmp_path / "out"
        texts.append(validate("--data", str(DATA), "--out", str(out), *arguments)[1])
        columns.append(list(pd.read_parquet(out / "results.parquet").columns))
    assert texts[0] == texts[1]
    assert columns[0] == columns[1]
    assert not {"seeds", "seeds_passed", "spread", "predicted_min", "predicted_max"} & set(columns[0])
    assert "chance" not in texts[0]


def test_accuracy_gives_its_range_over_the_seeds(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SUITE.replace("EXPECTED", "100"))
    suite, data_sets = load_suite(tmp_path / "suite.toml"), load([DATA], "labelled")
    simulator = seeded([])
    over_seeds = run_validation(suite, data_sets, [Runs(simulator(seed=seed)) for seed in (0, 1, 5)])
    alone = [run_validation(suite, data_sets, [Runs(simulator(seed=seed))]) for seed in (0, 1, 5)]
    middle = alone[1]  # every prediction grows with the seed, so their medians are those of the middle one
    for tables in (
        (over_seeds.accuracy(), middle.accuracy(), [one.accuracy() for one in alone]),
        (over_seeds.by_experiment(), middle.by_experiment(), [one.by_experiment() for one in alone]),
    ):
        assert len(tables[0]) > 4
        for row, of_middle, *of_seeds in zip(tables[0], tables[1], *tables[2], strict=True):
            assert (row.group, row.median, row.p90) == (of_middle.group, of_middle.median, of_middle.p90)
            medians, p90s = [one.median for one in of_seeds], [one.p90 for one in of_seeds]
            assert row.median_range == (min(medians), max(medians))
            assert row.p90_range == (min(p90s), max(p90s))
            assert of_middle.median_range is None
    ends = over_seeds.accuracy()[0].median_range
    assert ends == (0, pytest.approx(0.5))  # of the claim: 100, 110 and 150 ns
    assert with_range(0.1, ends) == "10.0 % (0.0 to 50.0)"


def test_the_progress_counts_the_runs_of_all_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []

    @contextmanager
    def bar(title: str, total: int, wanted: bool | None) -> Iterator[Progress]:
        told.append(total)
        yield lambda finished, doing: told.append(finished)

    def counting(points: Sequence[Point], progress: Progress | None) -> list[dict[str, float] | str]:
        assert progress is not None
        for number in range(len(points) + 1):
            progress(number, "")
        return made_up(points, progress)

    monkeypatch.setattr(summary, "progress_bar", bar)
    (tmp_path / "suite.toml").write_text(SUITE.replace("EXPECTED", "100"))
    run_validation(load_suite(tmp_path / "suite.toml"), [], [Runs(counting) for _ in range(3)])
    assert told == [3, 0, 1, 1, 2, 2, 3]


def test_seeds_share_the_folder_of_finished_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series = 'platform = "tum-6212u"\nkind = "latency"\nmetric = "latency_ns"\nparameters = { memory = "dram" }'
    small = series.replace('"dram"', '"dram", region_size = "4 MiB"')
    (tmp_path / "s.toml").write_text(SUITE.replace(series, small).replace("EXPECTED", "100"))
    arguments = ["validate", "--suite", str(tmp_path / "s.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    values = []
    for number in ("1", "3", "2"):
        main([*arguments, "--seeds", number])
        files = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "points").iterdir()}
        values.append(files)
    assert [len(files) for files in values] == [1, 3, 3]
    assert values[0].items() <= values[1].items(), "the first seed's point has been run again"
    assert values[1] == values[2]
    seeds = {json.loads(path.read_text())["seed"] for path in values[1]}
    assert len(seeds) == 3


MANY = """
title = "Many runs"
[sources.paper]
citation = "Somebody: Something, 2020"
[series.s]
platform = "tum-6212u"
kind = "bandwidth"
metric = "bandwidth_gb_s"
parameters = { pattern = "random" }
sweep = { threads = [1, 2, 3, 4, 5, 6] }
[[claim]]
id = "device-rise"
source = [{ ref = "paper", where = "Figure 1" }]
setup = "random reads"
quantity = "bandwidth"
kind = "shape"
expected = "more with more threads"
unit = ""
precision = "qualitative"
rule = "shape"
checks = [{ shape = "increasing", of = "s" }]
"""


def test_ctrl_c_keeps_what_is_finished_and_the_same_command_does_the_rest(tmp_path: Path) -> None:
    (tmp_path / "many.toml").write_text(MANY)
    # A background job of a shell ignores Ctrl-C, and its children inherit that; a user at a terminal does not.
    source = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from pmsim.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", source, "validate", "--suite", "many.toml", "--seeds", "2", "--jobs", "1"]
    command += ["--out", "out"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    points = tmp_path / "out" / "points"
    while process.poll() is None and not (points.is_dir() and any(points.glob("*.json"))):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    kept = {path: path.stat().st_mtime_ns for path in points.glob("*.json")}
    assert 0 < len(kept) < 12
    told = f"pmsim: interrupted; {len(kept)} of 12 runs are kept in out; run the same command again to resume\n"
    assert errors == told
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "12 runs" in again.stdout
    after = {path: path.stat().st_mtime_ns for path in points.glob("*.json")}
    assert len(after) == 12
    assert kept.items() <= after.items()
