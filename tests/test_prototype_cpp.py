"""Prototypes in C++: as in Python, and on this machine."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pmsim
from pmsim import ConfigError
from pmsim.measure import measure
from pmsim.prototype import LATER, CppPrototype, Memory, Prototype, check, record
from pmsim.prototype.compiled import compiled
from pmsim.prototype.load import load_prototype

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one process of a test run has compiled is there for the others."""
    base = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("XDG_CACHE_HOME", str(base.parent if base.name.startswith("popen") else base))
    monkeypatch.setenv("CXXFLAGS", "-O0")  # compiling takes longer than running


def counters(name: str = "Counters") -> Any:
    return load_prototype(f"{PROGRAMS / 'counters.py'}:{name}")


class Promise:
    """Of a program and its twin."""

    def expected(self, done: Any) -> Any:
        return done[-1][0] if done else 0

    def draw(self, random: Any) -> Any:
        return random.randrange(100), random.randbytes(24)


class _InCpp(Promise, CppPrototype):
    source = "programs/everything.hpp"
    program = "all::Everything"


class _InPython(Promise, Prototype):
    """The twin of everything.hpp, access by access."""

    def create(self, memory: Memory) -> None:
        self.pmem = memory.allocate("pmem", 4096, "pmem")
        self.dram = memory.allocate("dram", 4096, "dram")
        self.device = memory.allocate("block", 8192, "device")

    def run(self, memory: Memory, operation: Any) -> object:
        number, data = operation
        memory.store(self.pmem, number)
        memory.write(self.pmem + 8, bytes([number]))
        memory.write(self.pmem + 64, data)
        memory.flush(self.pmem, 72)
        memory.flush(self.pmem + 64, 8, kind="clflushopt")
        memory.flush(self.pmem + 128, 8, kind="clflush")
        memory.sfence()
        memory.stream(self.pmem + 1024, data[:16])
        memory.mfence()
        memory.order()
        memory.write(self.dram, memory.read(self.pmem + 1000, 128))
        if memory.load(self.pmem) == number:
            memory.mispredict()
        if int.from_bytes(memory.read(self.pmem, 4, dependent=True), "little") == number:
            memory.mispredict(at_hand=True)
        memory.prefetch(self.dram + 512)
        memory.fetch_add(self.pmem + 512, 3)
        memory.compare_exchange(self.pmem + 520, 0, number)
        for shared in (True, False):
            with memory.latch(self.dram + 1024, shared=shared):
                pass
        memory.compute(number, 7)
        # The instructions of a copy of five lines: copy_lines.hpp.
        memory.compute(0, 6 + 2)
        for line, instructions in enumerate([7, 8, 7, 8, 10]):
            memory.write(self.dram + 2048 + 64 * line, memory.read(self.pmem + 64 * line, 64))
            memory.compute(0, instructions)
        memory.block_write(self.device, self.pmem, 512)
        memory.block_flush()
        memory.block_read(self.device + 512, self.dram, 1024)
        memory.block_write(self.device, self.pmem, 512)
        memory.block_flush()
        return LATER if number % 2 else None

    def recover(self, memory: Memory) -> Any:
        return memory.load(memory.region("pmem"))


def test_a_program_in_cpp_does_what_its_twin_in_python_does(tmp_path: Path) -> None:
    traces = []
    for kind in (_InCpp, _InPython):
        twin = type("Twin", (kind,), {"program": "all::Everything"})  # a trace names its program
        record(twin, tmp_path / "one.trace", operations=50, warmup=20)
        traces.append((tmp_path / "one.trace").read_bytes())
    assert traces[0] == traces[1]


def test_it_is_crashed_and_its_points_have_names() -> None:
    result = check(counters(), states=2000)
    assert result.ok, result.problems
    assert [mutant.point.name for mutant in result.mutants] == ["counter: clwb", "counter: sfence"]
    assert all(mutant.caught for mutant in result.mutants)
    assert _InCpp.module() is _InCpp.module()


def test_a_point_without_a_number_is_the_line_that_calls_it() -> None:
    text = (PROGRAMS / "everything.hpp").read_text().splitlines()
    asked = {number for number, line in enumerate(text, 1) if "clflushopt" in line.lower()}
    result = check(_InCpp, states=100, mutate=False)
    named = {point.name for point in result.block.points if "clflushopt" in point.name}
    assert named == {f"all::Everything::run, line {line} of everything.hpp: clflushopt" for line in asked}


class GroupedRawl(CppPrototype):
    source = "programs/grouped_rawl.hpp"
    operations = warmup = 100

    def expected(self, done: Any) -> Any:
        return list(done)

    def draw(self, random: Any) -> Any:
        return random.randbytes(random.randrange(1, 200))


def test_a_block_of_the_core_keeps_its_promise_as_a_program_of_ones_own() -> None:
    result = check(GroupedRawl, states=500)
    assert result.ok, result.problems
    named = {mutant.point.name for mutant in result.mutants}
    entry = {
        "append: write all words of the entry back: clwb",
        "append: wait for all words of the entry: sfence",
    }
    assert entry <= named
    # Its recovery finds on this machine what it should, or this fails.
    assert len(measure("tum-6212u", blocks=[GroupedRawl], quick=True).rows) == 2


def test_threads_wait_for_its_latches() -> None:
    assert check(counters(), threads=2, states=1000, mutate=False).ok
    violation = check(counters("Unlatched"), threads=2, states=1000, mutate=False).check.violation
    assert violation is not None  # two threads add to what both have read


def test_this_machine_runs_it_and_the_simulator_beside_it(tmp_path: Path) -> None:
    result = measure("tum-6212u", blocks=[counters()], quick=True)
    row, alone = result.rows
    assert [(row.subject.block, row.subject.unit) for row in result.rows] == [
        ("Counters", "op/s"),
        ("Counters", "ns"),
    ]
    for timed in result.rows:
        assert timed.measured > 0
        assert timed.timing.repetitions == 5
    assert not result.orders()  # of a rate and a time
    # Of the operations that `record` draws, in DRAM.
    trace = tmp_path / "counters.trace"
    record(counters(), trace, pmem="dram")
    assert row.simulated == pmsim.trace.replay(trace, "tum-6212u").total.operations_per_s
    record(counters(), trace, pmem="dram", alone=True)
    assert alone.simulated == pmsim.trace.replay(trace, "tum-6212u").total.latency.p50_ps / 1000
    on_pmem = measure("tum-6212u", blocks=[counters()], quick=True, on=tmp_path / "pmem").rows[0]
    assert on_pmem.simulated < row.simulated
    assert not on_pmem.timing.is_dax


def test_this_machine_has_to_find_what_was_promised() -> None:
    with pytest.raises(
        ConfigError, match=r"^Backwards: on this machine recover\(\) returned \{0: .* promised is"
    ):
        measure("tum-6212u", blocks=[counters("Backwards")], quick=True)


class _WithOptions(_InCpp):
    def __init__(self, most: int = 7) -> None:
        self.most = most

    def draw(self, random: Any) -> Any:
        return random.randrange(self.most), bytes(24)


def test_a_constructor_of_ones_own_needs_not_call_that_of_the_base(tmp_path: Path) -> None:
    record(lambda: _WithOptions(most=3), tmp_path / "x.trace", operations=1, warmup=0)


class _OfWords(_InCpp):
    def draw(self, random: Any) -> Any:
        return "a word"


class _TooMany(CppPrototype):
    source = "programs/counters.hpp"
    program = "Counters"

    def expected(self, done: Any) -> Any:
        return {}

    def draw(self, random: Any) -> Any:
        return 4, False


class _Nowhere(_TooMany):
    source = "programs/none.hpp"


class _Unnamed(_TooMany):
    program = "no name"


class _FlagsOfText(_TooMany):
    flags = "-O2"


class _NumberedSource(_TooMany):
    source = 5  # type: ignore[assignment]


class _NoSource(CppPrototype):
    expected = draw = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (
            _Nowhere,
            r"programs/none\.hpp: no such file; name the header that has the class template 'Counters'$",
        ),
        (_Unnamed, r"^no name: is no name of a class template in C\+\+$"),
        (_FlagsOfText, r"^_FlagsOfText\.flags: '-O2' is not a list of texts; put it in brackets$"),
        (_NumberedSource, r"^_NumberedSource\.source: 5"),
        (_NoSource, r"^_NoSource\.source: is missing; name the header of C\+\+ that has the program$"),
    ],
)
def test_what_cannot_be_compiled_is_one_line(program: type[CppPrototype], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        program()
    assert "\n" not in str(raised.value)


def test_what_a_program_does_not_take_or_throws_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"^_OfWords of .*everything\.hpp: run\(\) takes tuple\[.*, bytes\]; draw\(\) returned 'a word'$",
    ):
        record(_OfWords, tmp_path / "x.trace")
    with pytest.raises(IndexError, match="there are four counters"):
        record(_TooMany, tmp_path / "x.trace")
    with pytest.raises(
        ConfigError, match=r"^_TooMany: on this machine it raises IndexError: there are four counters"
    ):
        measure("tum-6212u", blocks=[_TooMany], quick=True)
    with pytest.raises(ConfigError, match=r"^_InCpp: on this machine it raises .*no block device is measured"):
        measure("tum-6212u", blocks=[_InCpp], quick=True)
    with pytest.raises(
        ConfigError, match=r"^--blocks: .*is no CppPrototype; what is in Python cannot be timed"
    ):
        measure("tum-6212u", blocks=[_InPython])  # type: ignore[list-item]


class _Odd(CppPrototype):
    source = "programs/odd.hpp"
    program = "odd::Odd"
    drawn = 0

    def expected(self, done: Any) -> Any:
        return len(done)

    def draw(self, random: Any) -> Any:
        return self.drawn


class _Misaligned(_Odd):
    drawn = 4


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Overloaded", ["run() is one public method, neither overloaded nor a template"]),
        (
            "AllWrong",
            [
                "run() is noexcept, and what fails in memory passes through it",
                "create() or recover() is noexcept, and what fails in memory passes through it",
                "run() takes a class of its own; take numbers",
                "recover() returns a class of its own; return numbers",
            ],
        ),
    ],
)
def test_methods_that_cannot_be_called_are_told_by_the_compiler(name: str, says: list[str]) -> None:
    kind = type(name, (_Odd,), {"program": f"odd::{name}"})
    with pytest.raises(ConfigError, match="static") as raised:
        kind()
    line, _, errors = str(raised.value).partition("; all of it is in ")
    assert "odd.hpp: does not compile: " in line
    assert any(reason in line for reason in says)
    assert "\n" not in line
    assert all(reason in Path(errors).read_text() for reason in says)


def test_what_is_thrown_that_is_no_exception_has_a_type(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"^it throws something of type 'int', which is no std::exception$"):
        record(_Odd, tmp_path / "x.trace")


def test_a_misaligned_access_is_the_fault_of_the_program_on_this_machine_too(tmp_path: Path) -> None:
    line = next(
        n for n, text in enumerate((PROGRAMS / "odd.hpp").read_text().splitlines(), 1) if "store<" in text
    )
    where = re.escape(f"(odd::Odd::run, line {line} of odd.hpp)")
    with pytest.raises(ConfigError, match=rf"^a typed access is not aligned; use .* {where}$"):
        record(_Misaligned, tmp_path / "x.trace")
    with pytest.raises(
        ConfigError, match=r"^_Misaligned: on this machine it raises ConfigError: a typed store is not aligned"
    ):
        measure("tum-6212u", blocks=[_Misaligned], quick=True)


def test_an_access_outside_of_every_region_is_told_with_its_line(tmp_path: Path) -> None:
    beyond = type("Beyond", (_Odd,), {"drawn": 2**20})
    with pytest.raises(
        ConfigError, match=r"outside of region 'region.* \(odd::Odd::run, line \d+ of odd\.hpp\)$"
    ):
        record(beyond, tmp_path / "x.trace")


def test_regions_that_this_machine_cannot_hold_are_told_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMSIM_HOST_MEMORY", "1 MiB")
    with pytest.raises(
        ConfigError, match=r"^Counters: its regions take 0\.0 GiB, and this machine has 0\.0 GiB of memory left"
    ):
        measure("tum-6212u", blocks=[counters()], quick=True)


@pytest.mark.parametrize("compiler", ["no-such-compiler", "/no/such/compiler"])
def test_a_compiler_that_is_missing_is_one_line(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(
        ConfigError, match=f"^{compiler}: no such C\\+\\+ compiler; install one, or name it in CXX$"
    ):
        type("Other", (_InCpp,), {})()


def copier(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Path], Callable[[], int]]:
    """Have a compiler that takes the module of the counters for all: files that it reads, and its runs."""
    module = counters().module().__file__
    header, included = folder / "a program.hpp", folder / "other.hpp"
    for file in (header, included):
        file.write_text("// first\n")
    runs, compiler = folder / "runs", folder / "compiler"
    compiler.write_text(
        f"""#!/bin/sh
        echo run >> {runs}
        while [ $# -gt 0 ]; do case "$1" in -o) out=$2;; -MF) rule=$2;; esac; shift; done
        cp {module} "$out"
        printf '%s' 'program.so: {folder}/a\\ program.hpp \\\n  {included}' > "$rule"
        """
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    return [header, included], lambda: runs.read_text().count("run")


def test_it_is_compiled_again_when_a_file_that_it_has_read_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, runs = copier(tmp_path, monkeypatch)
    header = files[0]

    def compiles() -> int:
        told: list[str] = []
        compiled(header, "Program", progress=told.append)
        assert told == [f"compiling {header}"] or not told
        assert runs() == len(seen) + len(told)
        seen.extend(told)
        return len(told)

    seen: list[str] = []
    assert compiles() == 1
    assert compiles() == 0
    for file in files:
        file.write_text("// second\n")
        assert compiles() == 1
        assert compiles() == 0
    file.touch()
    assert compiles() == 0  # the same text
    monkeypatch.setenv("CXXFLAGS", "-O1")
    assert compiles() == 1


def test_a_check_takes_the_header_as_it_is_when_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, runs = copier(tmp_path, monkeypatch)
    kind = type("Edited", (counters(),), {"source": str(files[0]), "program": "Counters", "operations": 10})
    begins: list[Callable[[], object]] = [
        lambda: check(kind, states=10, mutate=False),
        lambda: record(kind, tmp_path / "edited.trace", operations=10, warmup=1),
        lambda: measure("tum-6212u", blocks=[kind], quick=True),
    ]
    for number, begin in enumerate(begins, 1):
        begin()
        assert runs() == number
        begin()
        assert runs() == number
        files[1].write_text(f"// edited {number} times\n")


@pytest.mark.parametrize(
    ("arguments", "status", "out", "err"),
    [
        (["crash", "counters.py:Counters", "--states", "500"], 0, "mutation score 100%: 2 of 2", ""),
        (
            ["measure", "--blocks", "counters.py:Counters", "--platform", "tum-6212u", "--quick"],
            0,
            "of 2 predictions are within a factor of two",
            "",
        ),
        (
            ["crash", "counters.py:Counters", "--debug"],
            2,
            "",
            "pmsim: crash: --debug steps through Python, and counters.py:Counters is C++; leave it out\n",
        ),
    ],
)
def test_from_the_shell(arguments: list[str], status: int, out: str, err: str, tmp_path: Path) -> None:
    counters().module()  # otherwise it says that it compiles
    where = [] if arguments[0] == "crash" else ["--out", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-m", "pmsim", *arguments, *where], cwd=PROGRAMS, capture_output=True, text=True
    )
    assert (ran.returncode, out in ran.stdout) == (status, True), ran
    assert err in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_wild_pointer_is_told_with_the_method_that_has_it(tmp_path: Path) -> None:
    (tmp_path / "wild.py").write_text(
        "import ctypes\n"
        f"import sys; sys.path.insert(0, {str(PROGRAMS)!r})\n"
        "from counters import Counters\n"
        "class Wild(Counters):\n"
        "    program = 'Counters'\n"
        "    def run(self, memory, operation):\n"
        "        ctypes.string_at(0)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pmsim", "crash", "wild.py:Wild"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "Segmentation fault" in ran.stderr
    assert "in run" in ran.stderr
