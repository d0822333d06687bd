"""Every storage engine against a plain dict, under operation sequences that Hypothesis invents and shrinks.

``PMSIM_ENGINE_EXAMPLES=2000`` is the nightly size: so many sequences of each engine and leaf layout, new ones.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pmsim._native import Engine, engines
from pmsim.errors import CapacityError, ConfigError

PAGE = 4096
MIB = 1 << 20
#: Engines that keep what a transaction changes in the frames of a small DRAM.
BUFFERED = [name for name in engines() if name.endswith("-bm") or name in ("three-tier", "spitfire")]
KEYS = st.integers(0, 120)
#: Changed rows of a transaction that may be refused: an eighth of the frames in DRAM.
FEWEST = 8
EXAMPLES = int(os.environ.get("PMSIM_ENGINE_EXAMPLES", "0"))


def tiny(engine: str) -> dict[str, Any]:
    """Room for all pages in the engine's home tier alone, so that pages come and go all the time."""
    home = engines()[engine][1]
    return {
        "page_bytes": PAGE,
        # No-steal: what a transaction changes must fit into DRAM. One that changes nearly every row is refused.
        "dram_bytes": 2 * MIB if home == "dram" or engine == "fptree" else 64 * PAGE,
        "pmem_bytes": 2 * MIB if home == "pmem" else 24 * PAGE,
        "ssd_bytes": 2 * MIB,
        "log_bytes": 4 * MIB,
        "debug_pages": True,
    }


def payload_bytes(engine: str) -> int:
    return 8 if engine == "fptree" else 600


class EngineMachine(RuleBasedStateMachine):
    """Rules are the operations of Engine; the reference is a dict, and a copy of it per transaction."""

    name = ""
    leaf_layout = "sorted"

    @initialize(keys=st.sets(KEYS, max_size=40), fill=st.sampled_from([0.66, 1.0]), seed=st.integers(1, 1000))
    def create(self, keys: set[int], fill: float, seed: int) -> None:
        self.width = payload_bytes(self.name)
        options = {**tiny(self.name), "leaf_layout": self.leaf_layout}
        self.engine = Engine(self.name, options=options, seed=seed, persistence=True)
        self.committed = {key: self.row(key) for key in sorted(keys)}
        rows = list(self.committed.items())
        self.table = self.engine.load("rows", key_bytes=8, payload_bytes=self.width, rows=rows, fill=fill)
        self.open: dict[int, bytes] | None = None
        self.half_way = False

    def attempt(self, operation: Callable[..., object], *arguments: object) -> object:
        """Return what the operation does, or None where it is refused for want of room.

        Its transaction can be rolled back, whatever it has done so far. Where the operation itself had begun to
        change pages, the engine says so, and a restart takes it back.
        """
        try:
            return operation(self.table, *arguments)
        except CapacityError:
            assert self.name in BUFFERED
            assert self.changed >= FEWEST, "a small transaction is refused"
            try:
                self.engine.abort()
            except ConfigError as error:
                if "in the middle of an operation; what is durable is sound: restart it" not in str(error):
                    raise
                self.half_way = True
                self.engine.restart(crash=True)
            self.open = None
            return None

    def row(self, seed: int) -> bytes:
        return bytes((seed * 31 + at) % 251 for at in range(self.width))

    @precondition(lambda self: self.open is None)
    @rule()
    def begin(self) -> None:
        self.engine.begin()
        self.open = dict(self.committed)
        self.changed = 0

    @precondition(lambda self: self.open is not None)
    @rule(key=KEYS, seed=st.integers(0, 250))
    def insert(self, key: int, seed: int) -> None:
        assert self.open is not None
        inserted = self.attempt(self.engine.insert, key, self.row(seed))
        if self.open is not None:
            assert inserted == (key not in self.open)
            self.changed += key not in self.open
            self.open.setdefault(key, self.row(seed))

    @precondition(lambda self: self.open is not None)
    @rule(first=KEYS, count=st.integers(1, 60), seed=st.integers(0, 250))
    def insert_many(self, first: int, count: int, seed: int) -> None:
        for key in range(first, first + count):
            if self.open is not None:
                self.insert(key, seed)

    @precondition(lambda self: self.open is not None)
    @rule(key=KEYS)
    def erase(self, key: int) -> None:
        assert self.open is not None
        erased = self.attempt(self.engine.erase, key)
        if self.open is not None:
            assert erased == (self.open.pop(key, None) is not None)
            self.changed += erased is True

    @precondition(lambda self: self.open is not None)
    @rule(first=KEYS, count=st.integers(1, 60))
    def erase_many(self, first: int, count: int) -> None:
        for key in range(first, first + count):
            if self.open is not None:
                self.erase(key)

    @precondition(lambda self: self.open is not None)
    @rule(key=KEYS, where=st.floats(0, 1), size=st.integers(1, 150), seed=st.integers(0, 250))
    def update(self, key: int, where: float, size: int, seed: int) -> None:
        assert self.open is not None
        offset = int(where * (self.width - 1))
        data = self.row(seed)[: min(size, self.width - offset)]
        updated = self.attempt(self.engine.update, key, offset, data)
        if self.open is None:
            return
        assert updated == (key in self.open)
        if key in self.open:
            self.changed += 1
            before = self.open[key]
            self.open[key] = before[:offset] + data + before[offset + len(data) :]

    @precondition(lambda self: self.open is not None)
    @rule(key=KEYS, where=st.floats(0, 1))
    def read(self, key: int, where: float) -> None:
        assert self.open is not None
        offset = int(where * (self.width - 1))
        expected = self.open[key][offset:] if key in self.open else None
        found = self.attempt(self.engine.read, key, offset, self.width - offset)
        assert found == expected or self.open is None

    @precondition(lambda self: self.open is not None)
    @rule(first=KEYS, limit=st.integers(0, 200), full_pages=st.booleans())
    def scan(self, first: int, limit: int, full_pages: bool) -> None:
        assert self.open is not None
        expected = [(key, self.open[key]) for key in sorted(self.open) if key >= first][:limit]
        found = self.attempt(self.engine.scan, first, limit, 0, self.width, full_pages)
        assert found == expected or self.open is None

    @precondition(lambda self: self.open is not None)
    @rule()
    def commit(self) -> None:
        assert self.open is not None
        self.engine.commit()
        self.committed, self.open = self.open, None

    @precondition(lambda self: self.open is not None)
    @rule()
    def abort(self) -> None:
        self.engine.abort()
        self.open = None

    @precondition(lambda self: self.open is None)
    @rule()
    def checkpoint(self) -> None:
        self.engine.checkpoint()

    @rule()
    def crash(self) -> None:
        self.engine.restart(crash=True)
        self.open = None

    @precondition(lambda self: self.open is None)
    @rule()
    def clean_restart(self) -> None:
        self.engine.restart(crash=False)

    @invariant()
    def is_sound_and_complete(self) -> None:
        if getattr(self, "open", None) is None and hasattr(self, "engine"):
            assert self.engine.check() == ""
            self.engine.begin()
            assert self.engine.scan(self.table, 0, 1000, 0, self.width) == sorted(self.committed.items())
            self.engine.commit()


@pytest.mark.parametrize("leaf_layout", ["sorted", "hash"])
@pytest.mark.parametrize("name", engines())
def test_an_engine_behaves_as_a_dict(name: str, leaf_layout: str) -> None:
    if name == "fptree" and leaf_layout == "hash":
        return  # it has leaves of its own

    class Machine(EngineMachine):
        pass

    Machine.name = name
    Machine.leaf_layout = leaf_layout
    # derandomize: the same sequences on each run; the native test has thousands of random ones, and who asks
    # for more gets others each time.
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES or 25,
            stateful_step_count=30,
            deadline=None,
            derandomize=not EXAMPLES,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize(
    ("name", "leaf_layout", "rows", "erased", "inserted"),
    [
        ("file-bm", "hash", 0, (), ((0, 39), (78, 48), (39, 39))),
        ("spitfire", "hash", 0, (), ((0, 35), (90, 36), (35, 55))),
        ("redirect-bm", "hash", 3, (2, 1), ((2, 32),)),
        ("ssd-bm", "sorted", 4, (2, 2), ((2, 48),)),
    ],
)
def test_a_transaction_that_is_too_large_is_refused_and_rolled_back(
    name: str, leaf_layout: str, rows: int, erased: tuple[int, ...], inserted: tuple[tuple[int, int], ...]
) -> None:
    """With DRAM full of what it has changed, or for the sake of what its rollback may need."""

    class Machine(EngineMachine):
        pass

    Machine.name, Machine.leaf_layout = name, leaf_layout
    machine = Machine()
    machine.create(keys=set(range(rows)), fill=0.66, seed=1)
    machine.begin()
    if erased:
        machine.erase_many(*erased)
    for first, count in inserted:
        if machine.open is not None:
            machine.insert_many(first, count, seed=0)
    assert machine.open is None, "it has not been refused"
    machine.is_sound_and_complete()


def test_an_operation_that_is_refused_half_way_is_taken_back_by_a_restart() -> None:
    class Machine(EngineMachine):
        name, leaf_layout = "spitfire", "hash"

    machine = Machine()
    keys = [3, 6, 13, 19, 30, 41, 49, 54, 58, 59, 61, 67, 69, 76, 87, 92, 101, 108, 112, 120]
    machine.create(keys=set(keys), fill=0.66, seed=814)
    machine.begin()
    for first, count in ((22, 43), (93, 60), (0, 20), (60, 40)):
        if machine.open is not None:
            machine.insert_many(first, count, seed=0)
    assert machine.half_way
    machine.is_sound_and_complete()


def test_an_unknown_engine_option_or_misuse_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match="engine = 'btree': unknown; known: main-memory"):
        Engine("btree", options={})
    with pytest.raises(ConfigError, match=r"dram_byte is unknown; known: .*dram_bytes"):
        Engine("main-memory", options={"dram_byte": 1})
    with pytest.raises(ConfigError, match="page_bytes = '4 KiB': not of its type"):
        Engine("main-memory", options={"page_bytes": "4 KiB"})
    with pytest.raises(ConfigError, match="page_bytes = 5000: must be a power of two"):
        Engine("main-memory", options={"page_bytes": 5000, "dram_bytes": MIB})
    with pytest.raises(ConfigError, match="leaf_layout = 'heap': unknown; known: sorted, hash"):
        Engine("main-memory", options={"leaf_layout": "heap", "dram_bytes": MIB})
    engine = Engine("main-memory", options=tiny("main-memory"), persistence=False)
    table = engine.load("rows", key_bytes=4, payload_bytes=16, rows=[])
    with pytest.raises(ConfigError, match="only inside of a transaction"):
        engine.read(table, 1, 0, 8)
    engine.begin()
    with pytest.raises(ConfigError, match="table 7 does not exist"):
        engine.read(7, 1, 0, 8)
    with pytest.raises(ConfigError, match="key 4294967296 has more than 4 bytes"):
        engine.read(table, 1 << 32, 0, 8)
    with pytest.raises(ConfigError, match="9 bytes at offset 8 leave the payload of 16"):
        engine.read(table, 1, 8, 9)
    with pytest.raises(ConfigError, match="the payload has 15 bytes, the table's 16"):
        engine.insert(table, 1, bytes(15))


def test_an_engine_refuses_data_that_do_not_fit() -> None:
    engine = Engine("main-memory", options={**tiny("main-memory"), "dram_bytes": 8 * PAGE}, persistence=False)
    rows = [(key, bytes(600)) for key in range(100)]
    with pytest.raises(ConfigError, match="dram_bytes = 32768; raise it"):
        engine.load("rows", key_bytes=8, payload_bytes=600, rows=rows)


def test_a_scan_loads_whole_rows_where_a_lookup_loads_what_it_reads() -> None:
    engine = Engine("three-tier", options=tiny("three-tier"), persistence=True)
    rows = [(key, bytes(600)) for key in range(40)]
    table = engine.load("rows", key_bytes=8, payload_bytes=600, rows=rows)
    engine.restart(crash=False)  # nothing is in DRAM

    def lines_loaded_by(operation: Callable[[], object]) -> float:
        before = engine.counters()["lines_loaded"]
        engine.begin()
        operation()
        engine.commit()
        return engine.counters()["lines_loaded"] - before

    # Rows 0 to 2 are on one page: the row, then two whole rows more.
    assert lines_loaded_by(lambda: engine.read(table, 0, 0, 8)) < 600 / 64
    assert lines_loaded_by(lambda: engine.scan(table, 0, 3, 0, 8)) >= 2 * 600 / 64
