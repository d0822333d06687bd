"""What is read off the operating system or off one benchmark: no search."""

import statistics
from collections.abc import Mapping
from typing import Any

from pmsim.calibrate_caches import fit_last_level
from pmsim.calibrate_draft import Draft, base_of, picoseconds
from pmsim.host_machine import HostMachine
from pmsim.host_subjects import INSTRUCTIONS, random_reads
from pmsim.host_timing import Effort, chase, time_benchmark
from pmsim.kinds.types import LINE_BYTES

_SMALL_PAGE = 4 * 2**10
_LARGE_PAGE = 2**21
#: One line of each page, and never the same cache set: what is left is translation.
_PAGE_AND_LINE = _SMALL_PAGE + LINE_BYTES
#: Pages that a second-level TLB holds, and far more than the first level does.
_FEW_PAGES = 256
#: Beyond the second-level TLB, while the lines fit into L2.
_MANY_PAGES = 8192
_LAST_LEVEL_ROUNDS = 5
_INSTRUCTIONS = 1000  # of an operation of benchmark "compute"
#: Instructions between loads: beyond any window, and the step of the benchmark.
_MOST_APART, _STEP_APART = 1024, 16
#: Share of a load's latency from which on loads do not overlap: between the half of two and the whole of one.
_ALONE = 0.8


def read_topology(draft: Draft, machine: HostMachine) -> None:
    """What the operating system says."""
    source = f"{machine.cpu}: as Linux {machine.kernel} reports it"
    draft.set("core.cores", machine.cores, source)
    draft.set("core.threads_per_core", machine.threads_per_core, source)
    for level, section in ((1, "l1"), (2, "l2"), (3, "llc")):
        cache = machine.cache(level)
        if cache is not None:
            draft.set(f"{section}.size", cache.size, source)
            draft.set(f"{section}.ways", cache.ways or draft.platform.value(section, "ways"), source)
    if machine.cache(3) is None:
        draft.set("llc.size", draft.platform.value("l2", "size"), "no cache behind L2 reported", "assumed")
    draft.set("dram.capacity", machine.memory // _SMALL_PAGE * _SMALL_PAGE, source)


def read_core(draft: Draft, machine: HostMachine, effort: Effort) -> None:
    """Clock and width of the core, latencies of L1 and L2, and translation."""
    at = f"on {draft.date}"
    add = time_benchmark("compute", {"instruction": "dependent-add"}, effort).ns
    nop = time_benchmark("compute", {"instruction": "nop"}, effort).ns
    draft.set(
        "core.frequency",
        round(_INSTRUCTIONS / add * 1000) * 10**6,
        f"measured {at}: rate of dependent additions, one per cycle",
    )
    draft.set(
        "core.dispatch_width",
        round(add / nop),
        f"measured {at}: {add / nop:.1f} instructions without operands per cycle",
    )
    l1, l2 = draft.platform.value("l1", "size"), draft.platform.value("l2", "size")
    l1_ns = _undisturbed(chase(l1 // 2, LINE_BYTES, cold=False), effort)
    l2_ns = _undisturbed(chase(max(2 * l1, l2 // 8), LINE_BYTES, cold=False), effort)
    draft.set("l1.latency", picoseconds(l1_ns), f"measured {at}: dependent loads over half of L1")
    draft.set(
        "l2.latency", picoseconds(max(l2_ns, l1_ns)), f"measured {at}: dependent loads over an eighth of L2"
    )
    few = _undisturbed(chase(_FEW_PAGES * _PAGE_AND_LINE, _PAGE_AND_LINE, cold=False), effort)
    many = _undisturbed(chase(_MANY_PAGES * _PAGE_AND_LINE, _PAGE_AND_LINE, cold=False), effort)
    translated = many > 2 * l2_ns
    how = (
        f"{_MANY_PAGES} lines in as many 4 KiB pages take {many:.1f} ns each, in L2 they take {l2_ns:.1f} ns: "
        + ("translated page by page" if translated else "2 MiB pages translate them")
        + f"; transparent huge pages: {machine.huge_pages}"
    )
    for size in ("tlb.page_size", "tlb.dram_page_size"):  # both media stand in the host's DRAM
        draft.set(size, _SMALL_PAGE if translated else _LARGE_PAGE, f"measured {at}: {how}")
    if translated:
        entries = 96 if base_of(machine) == "spr-cxl" else 64
        draft.set(
            "tlb.first_level_entries",
            entries,
            "Intel 64 and IA-32 Architectures Optimization Reference Manual: "
            f"{entries} entries for 4 KiB pages",
            "datasheet",
        )
        draft.set(
            "tlb.second_level_latency",
            picoseconds(max(0.0, few - l1_ns)),
            f"measured {at}: a line in each of {_FEW_PAGES} pages, less a hit of L1",
        )
        draft.set(
            "tlb.walk_latency",
            picoseconds(max(0.0, many - 2 * l2_ns)),
            f"measured {at}: a line in each of {_MANY_PAGES} pages, less two hits of L2: line and entry",
        )


def read_window(draft: Draft, effort: Effort, memory_ns: float) -> None:
    """Instructions in flight: as far apart two loads may be for the second to go out beside the first.

    The time of loads without order jumps from half of what a load takes to all of it where they are farther
    apart (H. Wong, *Measuring Reorder Buffer Capacity*, 2013).
    """
    within, beyond = 0, _MOST_APART
    while beyond - within > _STEP_APART:
        apart = (within + beyond) // 2 // _STEP_APART * _STEP_APART
        if time_benchmark("bandwidth", random_reads(effort.region, apart), effort).ns < _ALONE * memory_ns:
            within = apart
        else:
            beyond = apart
    draft.set(
        "core.window",
        within + INSTRUCTIONS["load"],
        f"measured on {draft.date}: loads without order overlap with {within} instructions between them and "
        f"those of the loop, and do not with {beyond}",
    )


def read_link(draft: Draft, machine: HostMachine, rates: Mapping[str, float]) -> set[str]:
    """What all cores together read and stream: less than memory has on a chiplet, or on a guest's share.

    Parameters
    ----------
    rates : mapping of str to float
        Values of the microbenchmarks [GB/s].

    Returns
    -------
    set of str
        The microbenchmarks that it has used; none where one core says nothing about more.
    """
    used = set()
    for interval, what in (("link_read_interval", "read, load"), ("link_write_interval", "write, ntstore")):
        name = f"{what} sequential, {machine.cores} threads"
        if (rate := rates.get(name)) is not None:
            used.add(name)
            draft.set(
                f"controller.{interval}",
                picoseconds(LINE_BYTES / rate),
                f"measured on {draft.date}: {name}: {rate:.1f} GB/s",
            )
    return used


def read_last_level(draft: Draft, machine: HostMachine, effort: Effort, memory_ns: float) -> None:
    """Latency and effective size of the last-level cache."""
    stated = machine.cache(3)
    if stated is None:
        draft.set("llc.latency", draft.platform.value("l2", "latency"), "no cache behind L2", "assumed")
        return
    l2_size, l2_ns = draft.platform.value("l2", "size"), draft.platform.value("l2", "latency") / 1000
    regions = [factor * l2_size for factor in (2, 3, 4, 6, 8, 12, 16) if factor * l2_size <= effort.region]
    # What a virtual machine finds of the cache changes from second to second: what it is as a rule counts.
    rounds = [
        {
            region: time_benchmark("chase", chase(region, LINE_BYTES, cold=False), effort).ns
            for region in regions
        }
        for _ in range(_LAST_LEVEL_ROUNDS)
    ]
    chases = {region: statistics.median(found[region] for found in rounds) for region in regions}
    fit = fit_last_level(chases, l2_size=l2_size, l2_ns=l2_ns, memory_ns=memory_ns, largest=stated.size)
    shown = ", ".join(f"{region >> 20} MiB {ns:.0f} ns" for region, ns in chases.items())
    source = f"fitted on {draft.date} to chases of {shown} (memory: {memory_ns:.0f} ns)"
    draft.set("llc.latency", picoseconds(fit.latency_ns), source, "fitted")
    draft.set(
        "llc.size",
        fit.size,
        f"{source}; the processor states {stated.size >> 20} MiB, which others may share",
        "fitted",
    )


def read_flush(draft: Draft, machine: HostMachine, effort: Effort) -> None:
    """Whether clwb keeps the line."""
    common = {"memory": "dram", "region_size": LINE_BYTES, "pattern": "same-line", "gap_ns": 500}
    if not (machine.has("clwb") and machine.has("clflushopt")):
        draft.set("core.flush_keeps_line", 0, f"the CPU flushes with {machine.flush()}", "measured")
        return
    kept = time_benchmark("latency", {**common, "operation": "store+clwb"}, effort).ns
    dropped = time_benchmark("latency", {**common, "operation": "store+clflushopt"}, effort).ns
    draft.set(
        "core.flush_keeps_line",
        int(kept < 0.85 * dropped),
        f"measured on {draft.date}: persisting one line again and again takes {kept:.0f} ns with clwb, "
        f"{dropped:.0f} ns with clflushopt, which drops it",
    )


def _undisturbed(parameters: Mapping[str, Any], effort: Effort) -> float:
    """Best time [ns] of a chase through the caches: what other processes evict can only add to it."""
    return time_benchmark("chase", parameters, effort).best_ns
