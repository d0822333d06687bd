"""Changes made one at a time: what a scenario's ``vary`` and its variants say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pmsim.errors import ConfigError
from pmsim.sweep import QuantityOf, axes_of, flatten
from pmsim.units import Quantity, format_value

#: Column that says what a point has changed, and what stands there where nothing is, unless the scenario says
#: something else.
CHANGED = "changed"
AS_IT_IS = "as it is"


class Variant(BaseModel):
    """Several parameters that change together."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    label: str = Field(min_length=1, description="what tables and figures call it")
    set: dict[str, Any] = Field(
        min_length=1, description="parameters of the kind or the machine, and their values"
    )

    @field_validator("set", mode="before")
    @classmethod
    def _flat(cls, value: Any) -> Any:
        return flatten(value, of="set") if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class Change:
    """Parameters with other values than the scenario gives them.

    Attributes
    ----------
    key : str
        Where the scenario says so, for messages: ``vary.threads``, ``variant.2``.
    label : str
        What tables and figures call it: ``core.window = 512``.
    settings : dict
        Axis, as in a sweep, to value, as the file has it.
    """

    key: str
    label: str
    settings: Mapping[str, Any]


def changes_of(
    vary: Mapping[str, Any], variants: Sequence[Variant], quantity_of: QuantityOf, unchanged: str
) -> list[Change]:
    """Return the changes, in the order of the file.

    Parameters
    ----------
    vary : mapping
        Axis to a list or to a range, as in a sweep: a change for each value.
    variants : sequence of Variant
        A change each.
    quantity_of : callable
        What each axis measures.
    unchanged : str
        The label of points that nothing has changed.

    Raises
    ------
    ConfigError : an unknown axis, an empty list, duplicates, a range that does not come out even, a mode.
    """
    if isinstance(vary.get("mode"), str):
        raise ConfigError("vary.mode: changes are made one at a time; remove it, or use [sweep]")
    try:
        axes, _ = axes_of(vary, quantity_of)
    except ConfigError as error:
        raise ConfigError("vary." + str(error).removeprefix("sweep.")) from None
    changes = [
        Change(
            f"vary.{axis}",
            f"{axis.removeprefix('platform.')} = {_written(value, quantity_of(axis))}",
            {axis: value},
        )
        for axis, values in axes.items()
        for value in values
    ]
    for number, variant in enumerate(variants, start=1):
        for axis in variant.set:
            try:
                quantity_of(axis)
            except ConfigError as error:
                raise ConfigError(f"variant.{number}.set.{axis}: {error}") from None
        changes.append(Change(f"variant.{number}", variant.label, variant.set))
    labels = [change.label for change in changes]
    for change in changes:
        if change.label == unchanged or labels.count(change.label) > 1:
            raise ConfigError(
                f"{change.key}: the label '{change.label}' stands for something else; choose another"
            )
    return changes


def _written(value: Any, quantity: Quantity | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if quantity is not None and isinstance(value, int):  # of a range, or without a unit
        return format_value(value, quantity)
    return str(value)
