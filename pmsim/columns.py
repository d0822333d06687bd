"""Names of columns that show swept platform parameters."""

from pmsim.fields import fields
from pmsim.units import Quantity

#: Columns of swept platform parameters carry their unit: time in ns, the rest in base units.
SUFFIX = {
    Quantity.TIME: "_ns",
    Quantity.SIZE: "_bytes",
    Quantity.FREQUENCY: "_hz",
    Quantity.BANDWIDTH: "_bytes_per_s",
    Quantity.COUNT: "",
    Quantity.FLAG: "",
}


def column_of_axis(axis: str) -> str:
    """Return the column that shows a swept axis."""
    if not axis.startswith("platform."):
        return axis
    section, _, name = axis.removeprefix("platform.").partition(".")
    field = fields().get(section, {}).get(name)
    return axis if field is None else axis + SUFFIX[field.quantity]
