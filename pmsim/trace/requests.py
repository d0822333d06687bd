"""What a trace asks of main memory, line by line, in the trace formats of memory simulators."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from pmsim import _native, arguments
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.messages import shown
from pmsim.platforms import Platform
from pmsim.profiles import load_platform
from pmsim.standing import phases
from pmsim.trace.micro_ops import LINE_BYTES, WINDOW_BYTES, Array
from pmsim.trace.replay import check_machine
from pmsim.trace.table_names import check_is_table, is_table
from pmsim.trace.written import written
from pmsim.trace_file import info, memory_in_use, recorded_platform
from pmsim.units import Quantity, parse

#: As in `native/include/pmsim/machine/requests.hpp`.
_REQUEST = np.dtype([("arrives", "<i8"), ("line", "<u8"), ("thread", "<u4"), ("operation", "<u4")])
_NOBODY = 2**32 - 1
_MEDIA = ("dram", "pmem")

MediumName = Literal["dram", "pmem"]


@dataclass(frozen=True)
class RequestCounts:
    """What `requests` has written.

    Attributes
    ----------
    path : Path
        The file.
    reads, writes : int
        Its requests, a line of 64 bytes each.
    """

    path: Path
    reads: int
    writes: int


@dataclass(frozen=True)
class _Clock:
    """Counts `ticks` in `picoseconds`."""

    ticks: int
    picoseconds: int

    def at(self, times: Array) -> Iterator[int]:
        """Return the last tick at each time; whole numbers of Python, as the products are long."""
        return (time * self.ticks // self.picoseconds for time in times.tolist())


@dataclass(frozen=True)
class _Piece:
    """Requests in the order of their arrival: columns of equal length."""

    time_ps: Array
    address: Array
    writes: Array  #: bool
    thread: Array
    asked: Array  #: bool: some thread has asked for it


class _Form(ABC):
    """Writes one format; a new one is a class like those below, and its name in `FORMS`."""

    #: What `clock` would be for; empty where it is for nothing, and then `no_clock` says why.
    clock_of: ClassVar[str] = ""
    no_clock: ClassVar[str] = ""

    @abstractmethod
    def add(self, piece: _Piece) -> None:
        """Write requests."""

    @abstractmethod
    def close(self) -> None:
        """End the file."""


class _Text(_Form):
    """One line per request."""

    def __init__(self, file: Path, name: Path, clock: _Clock) -> None:
        self.clock = clock
        self._file = file.open("w", encoding="ascii", newline="\n")
        self._file.write(self.head())

    def head(self) -> str:
        return ""

    @abstractmethod
    def lines(self, piece: _Piece) -> Iterable[str]: ...

    def add(self, piece: _Piece) -> None:
        self._file.write("".join(self.lines(piece)))

    def close(self) -> None:
        self._file.close()


class _DramSim3(_Text):
    """Address, READ or WRITE, clock."""

    clock_of = "tCK of its configuration"

    def lines(self, piece: _Piece) -> Iterable[str]:
        operations = np.where(piece.writes, "WRITE", "READ").tolist()
        rows = zip(piece.address.tolist(), operations, self.clock.at(piece.time_ps), strict=True)
        return map("0x%x %s %d\n".__mod__, rows)


class _Ramulator2(_Text):
    """LD or ST, address."""

    no_clock = "has no times"

    def lines(self, piece: _Piece) -> Iterable[str]:
        rows = zip(np.where(piece.writes, "ST", "LD").tolist(), piece.address.tolist(), strict=True)
        return map("%s 0x%x\n".__mod__, rows)


class _NvMain(_Text):
    """Clock, R or W, address, the line's 64 bytes, thread. Contents of lines nobody knows: zeros."""

    clock_of = "CPUFreq of its configuration"
    #: Its reader takes clocks by atoi().
    _MOST = 2**31 - 1

    def head(self) -> str:
        # Without it the reader drops the first request.
        return "NVMV0\n"

    def lines(self, piece: _Piece) -> Iterable[str]:
        clocks = list(self.clock.at(piece.time_ps))
        if clocks[-1] > self._MOST:
            raise ConfigError(
                f"form: nvmain counts at most {self._MOST} clocks, this run takes more; choose a longer clock "
                "or a shorter trace"
            )
        operations = np.where(piece.writes, "W", "R").tolist()
        threads = np.where(piece.asked, piece.thread, 0).tolist()
        rows = zip(clocks, operations, piece.address.tolist(), threads, strict=True)
        return map(f"%d %s %x {'0' * 2 * LINE_BYTES} %d\n".__mod__, rows)


class _Vans(_Text):
    """Address, R or W, and `:N` where the next one follows N + 2 clocks later instead of one."""

    clock_of = "tCK of its configuration"

    def __init__(self, file: Path, name: Path, clock: _Clock) -> None:
        super().__init__(file, name, clock)
        self._held = ""  # the line before, which says when the next one follows
        self._issued = 0

    def lines(self, piece: _Piece) -> Iterable[str]:
        operations = np.where(piece.writes, "W", "R").tolist()
        for address, operation, clock in zip(
            piece.address.tolist(), operations, self.clock.at(piece.time_ps), strict=True
        ):
            # One per clock: of those that arrive together all but the first one are late.
            issued = max(clock, self._issued + 1) if self._held else clock
            if self._held:
                yield self._held + (f":{gap - 2}\n" if (gap := issued - self._issued) > 1 else "\n")
            self._held, self._issued = f"0x{address:x} {operation}", issued

    def close(self) -> None:
        if self._held:
            self._file.write(self._held + "\n")
        super().close()


class _Table(_Form):
    """Time, operation, address and thread as columns."""

    no_clock = "has times in picoseconds"

    def __init__(self, file: Path, name: Path, clock: _Clock) -> None:
        import pyarrow as pa  # takes long, and few commands ask

        from pmsim.trace.table import RowWriter

        schema = pa.schema(
            {"time_ps": pa.int64(), "operation": pa.string(), "address": pa.uint64(), "thread": pa.int64()}
        )
        self._array = pa.array
        self._rows = RowWriter(file, name, schema)

    def add(self, piece: _Piece) -> None:
        self._rows.add(
            {
                "time_ps": piece.time_ps,
                "operation": np.where(piece.writes, "write", "read"),
                "address": piece.address,
                "thread": self._array(piece.thread, type="int64", mask=~piece.asked),
            }
        )

    def close(self) -> None:
        self._rows.close()


FORMS: dict[str, type[Any]] = {
    "dramsim3": _DramSim3,
    "ramulator2": _Ramulator2,
    "nvmain": _NvMain,
    "vans": _Vans,
    "table": _Table,
}


class _PageTables:
    """Puts page tables behind what a trace uses of DRAM.

    The core has them in the upper half of DRAM's window, far beyond the capacity of any machine. Each table,
    4 KiB, gets the next place when it is first read, as an operating system would have found one.
    """

    _BYTES = 4096
    _FIRST = WINDOW_BYTES // 2

    def __init__(self, used: int) -> None:
        self._next = -(-used // self._BYTES)
        self._places: dict[int, int] = {}

    def place(self, address: Array) -> Array:
        """Return addresses, those in page tables at their new places."""
        of_tables = address >= self._FIRST
        if not of_tables.any():
            return address
        tables, first, number = np.unique(
            address[of_tables] // self._BYTES, return_index=True, return_inverse=True
        )
        for table_ in tables[np.argsort(first)].tolist():
            if table_ not in self._places:
                self._places[table_] = self._next
                self._next += 1
        places = np.array([self._places[table_] for table_ in tables.tolist()], dtype=np.uint64)
        placed = address.copy()
        placed[of_tables] = places[number] * self._BYTES + address[of_tables] % self._BYTES
        return placed


def requests(
    path: str | Path,
    out: str | Path,
    *,
    form: str,
    medium: MediumName,
    platform: str | Mapping[str, Any] | Platform | None = None,
    clock: str | None = None,
    measured_only: bool = False,
) -> RequestCounts:
    """Time a trace on a platform and write every line that is asked of a medium (docs/traces.md).

    In the order of their arrival at the memory controllers; addresses count from the start of the medium, page
    tables follow what the trace uses of DRAM.

    Parameters
    ----------
    path : str or Path
        The trace.
    out : str or Path
        The file to write; an existing one is replaced when this one is complete.
    form : "dramsim3", "ramulator2", "nvmain", "vans" or "table"
        For which simulator; a table (.parquet, .csv, .csv.gz, .csv.zst) has times in picoseconds.
    medium : "dram" or "pmem"
        Whose lines.
    platform : str, mapping or Platform, optional
        As for `load_platform`; by default the machine of the recorded run.
    clock : str, optional
        Period ("1.25 ns") or frequency ("800 MHz") of the clock that `form` counts; "ramulator2" and "table"
        have none.
    measured_only : bool
        Leave the warm-up out, and count time from its end.

    Returns
    -------
    RequestCounts : how many requests there are.

    Raises
    ------
    ConfigError : not a usable trace, one that the platform has not enough memory or threads for, options that
        do not fit together, or nothing to write.
    """
    source = arguments.path("trace", path)
    out = arguments.output("out", out, source)
    if arguments.text("form", form) not in FORMS:
        raise ConfigError(f"form: {shown(form)} is unknown; {nearest(form, FORMS)}")
    if arguments.text("medium", medium) not in _MEDIA:
        raise ConfigError(f"medium: {shown(medium)} has no lines; choose 'dram' or 'pmem'")
    measured_only = arguments.flag("measured_only", measured_only)
    ticking = _clock_of(form, clock)
    _check_name(form, out)
    described = info(source)
    machine = recorded_platform(described) if platform is None else load_platform(platform)
    check_machine(source, machine)
    tables = _PageTables(described.extent_bytes["dram"])
    written_requests = writes = 0
    with written(out) as partial:
        writer: _Form = FORMS[form](partial, out, ticking)

        def take(given: bytes) -> None:
            nonlocal written_requests, writes
            rows = np.frombuffer(given, dtype=_REQUEST)
            address = rows["line"] * np.uint64(LINE_BYTES)
            piece = _Piece(
                time_ps=rows["arrives"],
                address=tables.place(address) if medium == "dram" else address,
                writes=rows["operation"] != 0,
                thread=rows["thread"].astype(np.int64),
                asked=rows["thread"] != _NOBODY,
            )
            writer.add(piece)
            written_requests += len(rows)
            writes += int(np.count_nonzero(piece.writes))

        try:
            in_use = memory_in_use(described)
            _native.trace_requests(source, machine.native(), in_use, medium, measured_only, take, phases())
        finally:
            writer.close()
        if not written_requests:
            raise ConfigError(
                f"medium: nothing is asked of {medium} on platform '{machine.name}'; choose the other one"
            )
    return RequestCounts(out, written_requests - writes, writes)


def _clock_of(form: str, clock: object) -> _Clock:
    kind = FORMS[form]
    if not kind.clock_of:
        if clock is not None:
            raise ConfigError(f"clock: form {form} {kind.no_clock}; leave this out")
        return _Clock(1, 1)
    if clock is None:
        raise ConfigError(
            f"clock: form {form} counts clocks; say how long one is ({kind.clock_of}), such as '1.25 ns' or "
            "'800 MHz'"
        )
    frequency = isinstance(clock, str) and clock.strip().endswith("Hz")
    try:
        value = parse(clock, Quantity.FREQUENCY if frequency else Quantity.TIME)
    except ConfigError as error:
        raise error.prefixed("clock") from None
    if value == 0:
        raise ConfigError(f"clock: {shown(clock)} never ticks; choose a period such as '1.25 ns'")
    return _Clock(value, 10**12) if frequency else _Clock(1, value)


def _check_name(form: str, out: Path) -> None:
    if form == "table":
        check_is_table(out)
    elif is_table(out):
        raise ConfigError(f"out: {shown(str(out))} is a table's name, form {form} is text; choose another one")
