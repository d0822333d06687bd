"""Kind "page-flush": what a flush writes and waits for is counted exactly; errors name their remedy."""

from typing import Any

import pytest

import pmsim
from pmsim.errors import ConfigError

PLATFORM = "tum-6212u"
LINES = 256


def flush(**given: Any) -> dict[str, int | float]:
    """Run few pages, over and over."""
    return pmsim.simulate_point("page-flush", PLATFORM, {"pages": 1024} | given)


@pytest.mark.parametrize(
    ("technique", "barriers", "fences"),
    [
        ("cow", 2, 3),
        ("cow-load", 2, 3),
        ("cow-invalidate", 3, 3),
        ("microlog", 4, 4),
        ("checksum", 1, 1),
        ("crc32c", 0, 0),
    ],
)
def test_a_technique_has_its_barriers(technique: str, barriers: int, fences: int) -> None:
    # From one start of measurement to the next, a flush may have been cut: at most one of 2000.
    measured = flush(technique=technique, dirty_lines=16)
    assert measured["barriers_per_op"] == pytest.approx(barriers, abs=0.005)
    assert measured["fences_per_op"] == pytest.approx(fences, abs=0.005)


@pytest.mark.parametrize("write", ["ntstore", "store+clwb"])
def test_copy_on_write_writes_every_line_and_one_header(write: str) -> None:
    for technique, headers in (("cow", 1), ("cow-load", 1), ("cow-invalidate", 2), ("checksum", 1)):
        measured = flush(technique=technique, dirty_lines=16, write=write)
        assert measured["lines_written_per_op"] == pytest.approx(LINES + headers, rel=0.002), technique


@pytest.mark.parametrize("dirty", [1, 7, 64, LINES])
def test_the_micro_log_writes_dirty_lines_twice_and_its_head_three_times(dirty: int) -> None:
    measured = flush(technique="microlog", dirty_lines=dirty)
    further = (32 + dirty - 1) // 64  # lines of the head that only the numbers of many dirty lines fill
    assert measured["lines_written_per_op"] == pytest.approx(2 * dirty + 3 + further, rel=0.002)


def test_a_page_of_copy_on_write_fills_whole_blocks_and_a_part_of_the_headers() -> None:
    measured = flush(pages=16384)
    assert measured["media_blocks_written_per_op"] == pytest.approx(LINES / 4 + 1, rel=0.01)
    # Now and then a header is still in the module's buffer when it is written again.
    assert measured["counter.pmem_partial_writes"] / measured["simulated_ops"] == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("threads", [1, 7])
def test_the_hybrid_is_never_slower_than_both(threads: int) -> None:
    for dirty in (8, LINES):
        few = {"dirty_lines": dirty, "threads": threads, "pages": 16384}
        cow, log, hybrid = (flush(technique=name, **few)["ops_per_s"] for name in ("cow", "microlog", "hybrid"))
        assert hybrid == pytest.approx(max(cow, log), rel=0.02)


def test_without_barriers_nothing_is_waited_for() -> None:
    measured = flush(barriers=False)
    assert measured["fences_per_op"] == 0
    assert measured["ops_per_s"] > flush()["ops_per_s"]


def test_pages_may_be_small_and_writers_many() -> None:
    measured = flush(page_size="1 KiB", threads=3, spare_slots=4, order="random")
    assert measured["lines_written_per_op"] == pytest.approx(16 + 1, rel=0.01)
    assert measured["bandwidth_gb_s"] == pytest.approx(measured["ops_per_s"] * 1024 / 1e9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dirty_lines": 257}, "dirty_lines: 257 of a page with 256 lines; choose at most that, or 'all'"),
        ({"page_size": "128 KiB"}, "page_size: 131072 B; choose at most 64 KiB"),
        ({"pages": 3, "threads": 4}, "pages: 3 for 4 threads; choose at least one page per thread"),
        ({"page_size": 100}, "not a multiple of 64 B"),
        ({"technique": "shadow"}, "technique"),
        ({"pages": 2**24, "page_size": "64 KiB"}, "pages: .* do not fit"),
    ],
)
def test_bad_parameters_name_the_key_and_the_remedy(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        flush(**given)
