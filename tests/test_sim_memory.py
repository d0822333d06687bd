"""SimMemory against a reference that knows only the rules: bytes read back, and what survives a crash."""

import itertools
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmsim import _native
from pmsim.errors import ConfigError

LINE, WORD = 64, 8
REGION = 2 * LINE
#: Word-sized pieces of a program: the reference looks at every subset of them.
MOST_PIECES = 9


@dataclass(frozen=True)
class Write:
    offset: int
    data: bytes
    streamed: bool = False


@dataclass(frozen=True)
class Flush:
    line: int
    kind: str


@dataclass(frozen=True)
class Fence:
    name: str


@dataclass(frozen=True)
class Order:
    """An ordering point; a missing one is the mutation test's."""

    missing: bool


@dataclass(frozen=True)
class Switch:
    thread: int


Action = Write | Flush | Fence | Order | Switch
MISSING_SITE, PRESENT_SITE = 1, 2


@dataclass(frozen=True)
class Piece:
    """A store as the persistence model sees it: inside one aligned word."""

    time: int
    thread: int
    offset: int
    data: bytes
    streamed: bool

    @property
    def line(self) -> int:
        return self.offset // LINE


def pieces_of(write: Write, time: int, thread: int) -> list[Piece]:
    cuts = [write.offset]
    end = write.offset + len(write.data)
    while cuts[-1] < end:
        cuts.append(min(end, cuts[-1] // WORD * WORD + WORD))
    return [
        Piece(time, thread, a, write.data[a - write.offset : b - write.offset], write.streamed)
        for a, b in itertools.pairwise(cuts)
    ]


def legal_images(program: list[Action], *, eadr: bool = False) -> set[bytes]:
    """Try every subset of the stores, keep those that break no rule, and replay them in program order."""
    pieces: list[Piece] = []
    flushes: list[tuple[int, int, Flush]] = []
    fences: list[tuple[int, int]] = []
    orders: list[tuple[int, int, bool]] = []
    thread = 0
    for time, action in enumerate(program):
        if isinstance(action, Write):
            pieces += pieces_of(action, time, thread)
        elif isinstance(action, Flush):
            flushes.append((time, thread, action))
        elif isinstance(action, Fence):
            fences.append((time, thread))
        elif isinstance(action, Order):
            orders.append((time, thread, action.missing))
        else:
            thread = action.thread

    def fenced(time: int, thread: int) -> bool:
        return any(when > time and who == thread for when, who in fences)

    def barriers(thread: int) -> list[int]:
        present = [when for when, who, missing in orders if who == thread and not missing]
        return sorted(present + [when for when, who in fences if who == thread])

    def begin(piece: Piece) -> int:
        """When the thread last had its stores ordered, by a fence or an ordering point."""
        return max((when for when in barriers(piece.thread) if when < piece.time), default=-1)

    def disordered(piece: Piece, until: float) -> bool:
        return not piece.streamed and any(
            who == piece.thread and missing and begin(piece) < when < until for when, who, missing in orders
        )

    def loose(piece: Piece) -> bool:
        if not eadr:
            return disordered(piece, piece.time)
        # With eADR earlier stores are late as well: a later one may have been swapped before them.
        is_open = all(when < piece.time for when in barriers(piece.thread))
        return is_open and disordered(piece, math.inf)

    def certain(piece: Piece) -> bool:
        if piece.streamed:
            return fenced(piece.time, piece.thread)
        if eadr:
            return not loose(piece)
        return any(
            flush.line == piece.line and when > piece.time and fenced(when, who) for when, who, flush in flushes
        )

    def legal(durable: list[Piece]) -> bool:
        chosen = set(map(id, durable))
        if any(certain(piece) and id(piece) not in chosen for piece in pieces):
            return False
        for index, piece in enumerate(pieces):
            if piece.streamed or id(piece) not in chosen:
                continue
            if eadr and not loose(piece):
                continue  # durable by itself
            before = [p for p in pieces[:index] if not p.streamed]
            first = [p for p in before if p.time < begin(piece)] if loose(piece) else before
            if any(p.line == piece.line and id(p) not in chosen for p in first):
                return False
            for when, who, flush in flushes:
                if eadr or flush.kind != "clflush" or who != piece.thread or when > piece.time:
                    continue
                if any(p.line == flush.line and p.time < when and id(p) not in chosen for p in before):
                    return False
        return True

    images = set()
    for choice in itertools.product([False, True], repeat=len(pieces)):
        durable = list(itertools.compress(pieces, choice))
        if legal(durable):
            image = bytearray(REGION)
            for piece in durable:
                image[piece.offset : piece.offset + len(piece.data)] = piece.data
            images.add(bytes(image))
    return images


def execute(program: list[Action], persistence: str = "adr") -> tuple["_native.SimMemory", int]:
    memory = _native.SimMemory(persistence=persistence)
    base = memory.allocate("pmem", REGION)
    memory.disable_site(MISSING_SITE)
    for action in program:
        match action:
            case Write(offset, data, streamed):
                (memory.stream if streamed else memory.write)(base + offset, data)
            case Flush(line, kind):
                memory.flush(base + line * LINE, LINE, kind)
            case Fence(name):
                getattr(memory, name)()
            case Order(missing):
                memory.order(site=MISSING_SITE if missing else PRESENT_SITE)
            case Switch(thread):
                memory.set_thread(thread)
    return memory, base


@st.composite
def programs(draw: st.DrawFn) -> list[Action]:
    """Short programs on two lines in which every written byte has a value of its own store."""
    program: list[Action] = []
    pieces = 0
    for number in range(1, draw(st.integers(1, 14)) + 1):
        what = draw(
            st.sampled_from(
                ["write", "write", "stream", "flush", "flush", "fence", "order", "missing", "switch"]
            )
        )
        if what in ("write", "stream"):
            streamed = what == "stream"
            # A few neighbouring words of each line, so that stores meet.
            word = draw(st.sampled_from([0, 1, 8, 9]))
            start = word * WORD + (0 if streamed else draw(st.integers(0, 7)))
            size = WORD if streamed else draw(st.integers(1, 12))
            write = Write(start, bytes([number]) * size, streamed)
            pieces += len(pieces_of(write, 0, 0))
            if pieces > MOST_PIECES:
                break
            program.append(write)
        elif what == "flush":
            kind = draw(st.sampled_from(["clwb", "clflushopt", "clflush"]))
            program.append(Flush(draw(st.integers(0, 1)), kind))
        elif what in ("order", "missing"):
            program.append(Order(what == "missing"))
        elif what == "fence":
            program.append(Fence(draw(st.sampled_from(["sfence", "mfence"]))))
        else:
            program.append(Switch(draw(st.integers(0, 1))))
    return program


@given(programs())
def test_durable_images_are_exactly_those_that_the_rules_allow(program: list[Action]) -> None:
    memory, base = execute(program)
    images = [state.read(base, REGION) for state in memory.crash_states(limit=1_000_000)]
    assert set(images) == legal_images(program)
    assert len(images) == len(set(images)) == memory.crash_count()


@given(programs())
def test_with_eadr_only_streamed_and_disordered_words_are_uncertain(program: list[Action]) -> None:
    memory, base = execute(program, "eadr")
    images = {state.read(base, REGION) for state in memory.crash_states(limit=1_000_000)}
    assert images == legal_images(program, eadr=True)


@given(programs(), st.integers(0, 2**32))
def test_samples_are_legal_and_repeatable(program: list[Action], seed: int) -> None:
    memory, base = execute(program)
    samples = [state.read(base, REGION) for state in memory.sample_crash_states(8, seed)]
    assert set(samples) <= legal_images(program)
    assert samples == [state.read(base, REGION) for state in memory.sample_crash_states(8, seed)]


@given(programs())
def test_word_state_says_in_how_many_images_the_word_is_current(program: list[Action]) -> None:
    memory, base = execute(program)
    images = legal_images(program)
    current = memory.read(base, REGION)
    for word in range(REGION // WORD):
        at = slice(word * WORD, (word + 1) * WORD)
        always = all(image[at] == current[at] for image in images)
        state = memory.word_state(base + word * WORD)
        if state == "durable" or not any(isinstance(a, Flush) and a.kind == "clflush" for a in program):
            assert state == ("durable" if always else "maybe")
        # A clflush also orders lines, which word_state leaves out: "maybe" is then the cautious answer.


writes = st.lists(st.tuples(st.integers(0, 40_000), st.binary(min_size=1, max_size=9_000)), max_size=12)


@given(writes)
def test_reads_return_the_bytes_last_written_and_zeros_elsewhere(program: list[tuple[int, bytes]]) -> None:
    memory = _native.SimMemory(persistence="none")
    base = memory.allocate("dram", 50_000)
    expected = bytearray(50_000)
    for offset, data in program:
        memory.write(base + offset, data)
        expected[offset : offset + len(data)] = data
    assert memory.read(base, 50_000) == expected


@given(writes)
def test_memory_is_held_for_written_pages_only(program: list[tuple[int, bytes]]) -> None:
    memory = _native.SimMemory(persistence="none")
    base = memory.allocate("pmem", 2**40)
    pages = set()
    for offset, data in program:
        offset *= 10_000_019
        memory.write(base + offset, data)
        pages |= set(range(offset // 4096, (offset + len(data) - 1) // 4096 + 1))
    memory.read(base + 2**39, 10_000)
    assert memory.touched_bytes == 4096 * len(pages)


def test_a_micro_operation_is_emitted_per_line() -> None:
    memory = _native.SimMemory()
    base = memory.allocate("pmem", 4096)
    memory.write(base + 60, bytes(8))
    memory.flush(base + 60, 8)
    memory.sfence()
    assert memory.emitted == 2 + 2 + 1


def test_a_disabled_site_does_nothing() -> None:
    memory = _native.SimMemory()
    base = memory.allocate("pmem", LINE)
    memory.disable_site(5)
    memory.write(base, bytes([1]) * 8)
    memory.flush(base, 8, site=5)
    memory.sfence(site=6)
    assert memory.word_state(base) == "maybe"


def test_wear_is_counted_per_line_and_block() -> None:
    memory = _native.SimMemory(persistence="none", wear=True)
    base = memory.allocate("pmem", 4096)
    memory.stream(base, bytes(256))
    memory.stream(base, bytes(64))
    wear = memory.wear()
    assert (wear["lines"]["writes"], wear["lines"]["maximum"], wear["lines"]["histogram"][:2]) == (5, 2, [3, 1])
    assert wear["blocks"]["writes"] == 1  # five lines in a row of one block


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda m, a: m.read(a + 4090, 8), "outside of region 'unnamed' on pmem, which is 4096 bytes"),
        (lambda m, a: m.write(0, b"x"), "not an address of dram, pmem or block"),
        (lambda m, a: m.stream(a + 4, bytes(8)), "multiples of 8 bytes"),
        (lambda m, a: m.flush(a, 8, "clfulsh"), "known: clwb, clflushopt, clflush"),
        (lambda m, a: m.allocate("tape", 8), "known: dram, pmem, block"),
        (lambda m, a: m.allocate("pmem", 2**44), "do not fit"),
        (lambda m, a: m.allocate("pmem", 0), "size is 0 bytes"),
        (lambda m, a: m.block_read(a, a, 512), "not on block"),
        (lambda m, a: m.wear(), "create the memory with wear = true"),
        (lambda m, a: _native.SimMemory(persistence="none").crash_count(), "persistence adr or eadr"),
    ],
)
def test_misuse_is_a_config_error_that_says_what_to_do(action, message: str) -> None:
    memory = _native.SimMemory()
    address = memory.allocate("pmem", 4096)
    with pytest.raises(ConfigError, match=message):
        action(memory, address)


def test_too_many_images_are_refused() -> None:
    memory = _native.SimMemory()
    base = memory.allocate("pmem", 4096)
    for line in range(20):
        memory.write(base + line * LINE, b"x")
    assert memory.crash_count() is None
    with pytest.raises(ConfigError, match="sample_crash_states"):
        memory.crash_states()
