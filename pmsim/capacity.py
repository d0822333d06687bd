"""What capacity costs, and which configurations nothing beats."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pmsim import arguments
from pmsim.errors import ConfigError
from pmsim.hints import nearest
from pmsim.toml_file import parse_toml, read_text

if TYPE_CHECKING:
    import pandas as pd

TIERS = ("dram", "pmem", "ssd")
_GB = 10**9
_SHIPPED = Path(__file__).parent / "data" / "prices.toml"


#: What kinds call the prices that pmsim comes with.
SHIPPED_PRICES = "pmsim"


@dataclass(frozen=True)
class Price:
    """Of one tier."""

    usd_per_gb: float
    year: int
    source: str


def load_prices(path: str | Path | None = None) -> dict[str, Price]:
    """Return the price of each tier.

    Parameters
    ----------
    path : str or Path, optional
        A TOML file with the tables dram, pmem and ssd; by default the one that pmsim comes with.

    Raises
    ------
    ConfigError : a table or key is missing, unknown or no price.
    """
    return _read_prices(arguments.path("prices", path)) if path is not None else dict(_shipped_prices())


@cache
def _shipped_prices() -> dict[str, Price]:
    return _read_prices(_SHIPPED)


def _read_prices(file: Path) -> dict[str, Price]:
    tables = parse_toml(read_text(file), str(file))
    prices = {}
    for tier in TIERS:
        table = tables.pop(tier, None)
        if not isinstance(table, dict):
            raise ConfigError(f"{file}: {tier}: is missing; write [{tier}] with usd_per_gb, year and source")
        unknown = [key for key in table if key not in Price.__annotations__]
        if unknown:
            raise ConfigError(
                f"{file}: {tier}.{unknown[0]}: unknown key; {nearest(unknown[0], Price.__annotations__)}"
            )
        usd, year, source = table.get("usd_per_gb"), table.get("year"), table.get("source")
        if isinstance(usd, bool) or not isinstance(usd, int | float) or not 0 <= usd < math.inf:
            raise ConfigError(f"{file}: {tier}.usd_per_gb: is not a price; write a number from 0 on")
        if not isinstance(year, int) or not isinstance(source, str) or not source:
            raise ConfigError(f"{file}: {tier}: a price needs a year and a source; add them")
        prices[tier] = Price(float(usd), year, source)
    if tables:
        raise ConfigError(f"{file}: {next(iter(tables))}: unknown tier; {nearest(next(iter(tables)), TIERS)}")
    return prices


def prices_of(name: str) -> dict[str, Price]:
    """Return the prices that a scenario names: a TOML file, or those that pmsim comes with.

    Raises
    ------
    ConfigError : ``prices: problem; remedy``.
    """
    try:
        return load_prices(None if name == SHIPPED_PRICES else name)
    except ConfigError as error:
        raise error.prefixed("prices") from None


def cost_usd(
    dram: int, pmem: int, ssd: int, prices: dict[str, Price], *, pmem_priced_as: str = "pmem"
) -> float:
    """Return what these capacities [B] cost [USD]; processors, boards and power are not in it.

    ``pmem_priced_as`` is the tier whose price the middle one has, as of a platform.
    """
    sizes = (("dram", dram), (pmem_priced_as, pmem), ("ssd", ssd))
    return sum(prices[tier].usd_per_gb * size / _GB for tier, size in sizes)


def pareto_front(
    frame: "pd.DataFrame",
    *,
    minimise: Sequence[str] = ("cost_usd",),
    maximise: Sequence[str] = ("transactions_per_s",),
    by: Sequence[str] = (),
) -> "pd.Series[bool]":
    """Return which rows no other row beats.

    Parameters
    ----------
    frame : DataFrame
        Of a result. Rows without a number in one of the columns are never on the front.
    minimise, maximise : sequence of str
        Columns that matter. A row beats another that it equals or betters in all of them and betters in one.
    by : sequence of str
        Columns whose values part the rows into questions of their own, such as ``workload``.

    Raises
    ------
    ConfigError : a column that the frame lacks, or one of words that is to be made small or large.
    """
    import pandas as pd

    minimise = arguments.texts("pareto_front: minimise", minimise)
    maximise = arguments.texts("pareto_front: maximise", maximise)
    by = arguments.texts("pareto_front: by", by)
    for column in (*minimise, *maximise, *by):
        if column not in frame.columns:
            known = [str(name) for name in frame.columns]
            raise ConfigError(f"pareto_front: unknown column '{column}'; {nearest(column, known)}")
    # By their places: frames of two results, one below the other, have labels in common.
    placed = frame.reset_index(drop=True)
    for column in (*minimise, *maximise):
        try:
            placed = placed.assign(**{column: placed[column].astype(float)})
        except (TypeError, ValueError):
            raise ConfigError(f"pareto_front: column '{column}' has words; choose one of numbers") from None
    beaten: dict[object, bool] = {}
    # What has no value in a column, as a parameter that an engine does not have, is a question of its own.
    groups = placed.groupby(list(by), sort=False, dropna=False) if by else [((), placed)]
    for _, rows in groups:
        goals = pd.concat([rows[list(minimise)], -rows[list(maximise)]], axis=1).dropna()
        for place, goal in goals.iterrows():
            no_worse = (goals <= goal).all(axis=1)
            better = (goals < goal).any(axis=1)
            beaten[place] = bool((no_worse & better).any())
    # Of no rows pandas would make no mask.
    return pd.Series([not beaten.get(place, True) for place in placed.index], index=frame.index, dtype=bool)
