"""Types of the parameters of kinds: each knows what it measures, so that ranges and units work on all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator

from pmsim.errors import ConfigError
from pmsim.messages import shown
from pmsim.units import Measures, Quantity, format_value, parse

LINE_BYTES = 64

Memory = Literal["dram", "pmem"]
N = TypeVar("N", int, float)


class KindParameters(BaseModel):
    """Base of the parameter models: unknown keys and wrong types are refused, nothing is coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    #: Headings of long lists: the first parameter below each, and what it and those that follow are of.
    sections: ClassVar[Mapping[str, str]] = {}

    def file_contents(self) -> dict[str, str]:
        """Return a digest of each file that is simulated, by parameter: a file may change and keep its name."""
        return {}


@dataclass(frozen=True)
class NamesFile:
    """Stands beside the type of a parameter that names a file: a path, or one of some words."""

    words: tuple[str, ...] = ()


FileName = Annotated[str, NamesFile()]


def _size(minimum: int, multiple: int, maximum: int = 2**43) -> Callable[[object], int]:
    def validate(value: object) -> int:
        size = parse(value, Quantity.SIZE)
        if size < minimum:
            raise ConfigError(
                f"{shown(value)} is too small; choose at least {format_value(minimum, Quantity.SIZE)}"
            )
        if size > maximum:
            raise ConfigError(
                f"{shown(value)} is too large; choose at most {format_value(maximum, Quantity.SIZE)}"
            )
        if size % multiple:
            raise ConfigError(f"{shown(value)} is not a multiple of {multiple} B; choose a multiple")
        return size

    return validate


def _count(value: object) -> int:
    count = parse(value, Quantity.COUNT)
    if count < 1:
        raise ConfigError(f"{count} is too few; choose at least 1")
    return count


def _count_or_zero(value: object) -> int:
    count = parse(value, Quantity.COUNT)
    if count < 0:
        raise ConfigError(f"{count} is too few; choose at least 0")
    return count


def or_word(word: str, validate: Callable[[object], N]) -> Callable[[object], N | str]:
    """Return a validator that takes a word, too, and says so of whatever is neither."""

    def either(value: object) -> N | str:
        if isinstance(value, str) and value == word:
            return word
        try:
            return validate(value)
        except ConfigError as error:
            raise ConfigError(f"{error}, or write '{word}'") from None

    return either


def _page_size(value: object) -> int:
    size = _size(4096, 4096)(value)
    if size & (size - 1):
        raise ConfigError(f"{shown(value)} is not a power of two; choose 4 KiB, 2 MiB or 1 GiB")
    return size


def _flag_or_platform(value: object) -> bool | str:
    if isinstance(value, bool) or (isinstance(value, str) and value == "platform"):
        return value
    raise ConfigError(f"{shown(value)} is not a flag; write true, false or 'platform'")


Threads = Annotated[int, BeforeValidator(_count), Measures(Quantity.COUNT)]
Count = Threads
CountOrZero = Annotated[int, BeforeValidator(_count_or_zero), Measures(Quantity.COUNT)]
#: A whole number of 8-byte words, at least one, at most 1 MiB.
WordSize = Annotated[int, BeforeValidator(_size(8, 8, 2**20)), Measures(Quantity.SIZE)]
#: Bytes of a row, of which its store says how many it takes.
RowSize = Annotated[int, BeforeValidator(_size(8, 1, 2**20)), Measures(Quantity.SIZE)]
#: A whole number of 64-byte lines, at least one.
LineSize = Annotated[int, BeforeValidator(_size(LINE_BYTES, LINE_BYTES)), Measures(Quantity.SIZE)]
#: A whole number of lines, or 0 for "not at all".
LineSizeOrZero = Annotated[int, BeforeValidator(_size(0, LINE_BYTES)), Measures(Quantity.SIZE)]
#: A whole number of 512-byte sectors, at most 16 MiB.
SectorSize = Annotated[int, BeforeValidator(_size(512, 512, 2**24)), Measures(Quantity.SIZE)]
Dimms = Annotated[int | Literal["all"], PlainValidator(or_word("all", _count)), Measures(Quantity.COUNT)]
CountOrAll = Dimms
PageSize = Annotated[
    int | Literal["platform"], PlainValidator(or_word("platform", _page_size)), Measures(Quantity.SIZE)
]
FlagOrPlatform = Annotated[bool | Literal["platform"], PlainValidator(_flag_or_platform)]
#: Bytes per access of a task, or "task": what the task does by default.
TaskSize = Annotated[
    int | Literal["task"],
    PlainValidator(or_word("task", _size(LINE_BYTES, LINE_BYTES, 2**24))),
    Measures(Quantity.SIZE),
]


def files_of(model: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """Return the parameters that name a file, each with the words that stand for none."""
    return {
        name: item.words
        for name, field in model.model_fields.items()
        for item in field.metadata
        if isinstance(item, NamesFile)
    }


def quantity_of(model: type[BaseModel], name: str) -> Quantity | None:
    """Return what a parameter measures; None for choices and texts. Unknown names raise KeyError."""
    for item in model.model_fields[name].metadata:
        if isinstance(item, Measures):
            return item.quantity
    return None
