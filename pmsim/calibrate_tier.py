"""The second tier of a host profile."""

from pmsim.calibrate_draft import Draft
from pmsim.kinds.types import LINE_BYTES
from pmsim.profiles import load_platform

_SMALL_PAGE = 4 * 2**10


def dram_as_second_tier(draft: Draft) -> None:
    """The pmem tier of a machine without persistent memory: its DRAM once more, as HostMemory maps it."""
    dram, controller = draft.platform.parameters["dram"], draft.platform.parameters["controller"]
    source = "no persistent memory: the second tier is DRAM, as HostMemory maps it"
    values = {
        "dimms": controller["channels"].value,
        "capacity": dram["capacity"].value,
        "interleave": max(LINE_BYTES, controller["dram_interleave"].value),
        "block_size": LINE_BYTES,
        "buffer_latency": dram["row_hit_latency"].value,
        "media_read_latency": dram["row_miss_penalty"].value,
        "media_read_service": dram["read_burst"].value,
        "media_write_service": dram["write_burst"].value,
        "write_latency": 0,
        "bank_read_busy": 0,
        "read_buffer_blocks": 1,
        "write_buffer_blocks": 1,
        "bus_read": 0,
        "bus_write": 0,
        "own_path": 1,
        "reads_per_write": 1,
        "reread_delay": dram["reread_delay"].value,
        "translation_entries": 1,
        "translation_page": _SMALL_PAGE,
        "translation_miss_latency": 0,
        "wear_stall_writes": 0,
        "wear_stall": 0,
    }
    for name, value in values.items():
        draft.set(f"pmem.{name}", value, source, "assumed")
    draft.set(
        "controller.pmem_write_queue",
        controller["dram_write_queue"].value,
        "as controller.dram_write_queue: the second tier is DRAM",
        "assumed",
    )
    for name in ("eadr", "memory_mode", "pmem_read_queue"):
        draft.set(f"controller.{name}", 0, source, "assumed")


def modules_as_second_tier(draft: Draft) -> None:
    """Modules behind a DAX file: those of tum-6212u, before their medium is fitted.

    How many there are cannot be seen from a file; what is fitted is the bandwidth of all together.
    """
    model = load_platform("tum-6212u")
    for name, parameter in model.parameters["pmem"].items():
        source = f"as tum-6212u, not measured: {parameter.source}"
        draft.set(f"pmem.{name}", parameter.value, source, "assumed")
    channels = draft.platform.value("controller", "channels")
    modules = min(model.value("pmem", "dimms"), channels)
    draft.set("pmem.dimms", modules, "as tum-6212u, at most one per channel", "assumed")
    for name in ("pmem_write_queue", "pmem_read_queue", "pmem_read_credits"):
        parameter = model.parameters["controller"][name]
        source = f"as tum-6212u, not measured: {parameter.source}"
        draft.set(f"controller.{name}", parameter.value, source, "assumed")
