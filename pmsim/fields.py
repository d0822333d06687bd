"""The table of platform parameters as the native core declares it."""

from dataclasses import dataclass
from functools import cache

from pmsim import _native
from pmsim.units import Quantity, format_value


@dataclass(frozen=True)
class Field:
    """One parameter of a platform.

    Attributes
    ----------
    section, name : str
        Where it stands in a profile.
    quantity : Quantity
        What it measures.
    minimum, maximum : int [base units]
        The range that the core accepts.
    meaning : str
        One line for people.
    lanes_share : bool
        Whether machines on which one pass times one execution have it alike (docs/model/lanes.md).
    """

    section: str
    name: str
    quantity: Quantity
    minimum: int
    maximum: int
    meaning: str
    lanes_share: bool

    @property
    def key(self) -> str:
        """``section.name``."""
        return f"{self.section}.{self.name}"

    @property
    def range(self) -> str:
        """The accepted range, with units."""
        if self.quantity is Quantity.FLAG:
            return "true or false"
        return f"{format_value(self.minimum, self.quantity)} to {format_value(self.maximum, self.quantity)}"


@cache
def fields() -> dict[str, dict[str, Field]]:
    """All parameters, by section and name, in the order of the native table."""
    table: dict[str, dict[str, Field]] = {}
    for row in _native.fields():
        field = Field(
            section=str(row["section"]),
            name=str(row["name"]),
            quantity=Quantity(str(row["quantity"])),
            minimum=int(row["minimum"]),
            maximum=int(row["maximum"]),
            meaning=str(row["meaning"]),
            lanes_share=bool(row["lanes_share"]),
        )
        table.setdefault(field.section, {})[field.name] = field
    return table
