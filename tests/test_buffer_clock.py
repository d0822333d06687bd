"""CLOCK of the buffer managers against libcachesim's, on the same page traces."""

import subprocess
import sys

import numpy as np
import pytest

from pmsim import _native

libcachesim = pytest.importorskip("libcachesim", reason="the independent implementation; test extra")


def our_hits(pages: np.ndarray, frames: int) -> np.ndarray:
    return np.frombuffer(_native.clock_hits(pages.tolist(), frames), dtype=np.uint8)


def reference_hits(pages: np.ndarray, frames: int) -> np.ndarray:
    # init_freq = 1: loading a page is touching it, so its reference bit is set ("swaps those pages out that
    # have not been touched since the previous iteration", van Renen et al. 2018, section 4.2).
    cache = libcachesim.Clock(frames, init_freq=1, n_bit_counter=1)
    request = libcachesim.Request()
    request.obj_size = 1
    hits = np.zeros(len(pages), dtype=np.uint8)
    for index, page in enumerate(pages):
        request.obj_id = int(page) + 1
        hits[index] = cache.get(request)
    return hits


def zipf(count: int, pages: int, seed: int) -> np.ndarray:
    weights = 1 / np.arange(1, pages + 1)
    random = np.random.default_rng(seed)
    return random.permutation(pages)[random.choice(pages, count, p=weights / weights.sum())]


TRACES = {
    "zipf": zipf(40_000, 2_000, 1),
    "uniform": np.random.default_rng(2).integers(0, 500, 30_000),
    "loop": np.tile(np.arange(120), 100),
    "scans-between-hot-pages": np.concatenate(
        [np.concatenate([zipf(600, 90, seed), np.arange(1_000)]) for seed in range(12)]
    ),
}


@pytest.mark.parametrize("frames", [8, 100, 777])
@pytest.mark.parametrize("trace", TRACES)
def test_every_hit_and_miss_equals_that_of_libcachesim(trace: str, frames: int) -> None:
    pages = TRACES[trace]
    ours = our_hits(pages, frames)
    theirs = reference_hits(pages, frames)
    differing = np.flatnonzero(ours != theirs)
    assert differing.size == 0, f"first at request {differing[0]} of {len(pages)}"
    assert 0 < ours.mean() < 1 or (trace == "loop" and frames < 120)


def test_the_comparison_can_tell_clock_from_another_policy() -> None:
    pages = TRACES["zipf"]
    cache = libcachesim.FIFO(100)
    request = libcachesim.Request()
    request.obj_size = 1
    hits = 0
    for page in pages:
        request.obj_id = int(page) + 1
        hits += cache.get(request)
    assert abs(hits - int(our_hits(pages, 100).sum())) > 100


@pytest.mark.parametrize("order", ["pmsim, libcachesim", "libcachesim, pmsim"])
def test_errors_keep_their_class_where_another_extension_translates_exceptions_too(order: str) -> None:
    script = f"""
import {order}
from pmsim import _native
try:
    _native.crash_check("no-such-block", monitor=_native.CrashMonitor())
except pmsim.errors.ConfigError:
    print("a ConfigError")
"""
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "a ConfigError\n"
