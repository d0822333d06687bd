"""What the capacities of a storage engine's tiers are on axes, and what they cost."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from pmsim.capacity import SHIPPED_PRICES, TIERS, cost_usd, prices_of
from pmsim.kinds.types import NamesFile
from pmsim.platforms import Platform

GIB = 1 << 30

#: Parameter `prices`. Not part of what is simulated: a cost is arithmetic on a row, so prices change neither
#: seeds nor results.
Prices = Annotated[
    str,
    NamesFile((SHIPPED_PRICES,)),
    Field(exclude=True, description=f"for cost_usd: a TOML file; {SHIPPED_PRICES}: those that it comes with"),
]


def image_room(engine: str, memory: int, ssd: int) -> dict[str, int]:
    """Return the bytes of a checkpoint image by its tier: a place for each page of main memory."""
    return {"ssd" if ssd else "pmem": memory} if engine == "main-memory" else {}


def capacity_columns(
    machine: Platform, dram: int, pmem: int, ssd: int, prices: str, *, beside: Mapping[str, int]
) -> dict[str, float | str]:
    """Return capacities [GiB], given in bytes, the prices and the cost.

    `beside` are the bytes of logs and checkpoint images by tier: paid for as well, but no capacity of pages.

    Raises
    ------
    ConfigError : ``prices: problem; remedy``.
    """
    dram_bought, pmem_bought, ssd_bought = (
        size + beside.get(tier, 0) for tier, size in zip(TIERS, (dram, pmem, ssd), strict=True)
    )
    return {
        "prices": prices,
        "dram_gib": dram / GIB,
        "pmem_gib": pmem / GIB,
        "ssd_gib": ssd / GIB,
        "cost_usd": cost_usd(
            dram_bought, pmem_bought, ssd_bought, prices_of(prices), pmem_priced_as=machine.pmem_priced_as
        ),
    }
