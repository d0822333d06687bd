"""The log algorithms; the core has the list."""

from typing import TYPE_CHECKING, Literal

from pmsim import _native

#: Every algorithm: whether it knows its entries.
HAS_ENTRIES: dict[str, bool] = {name: entries for name, (_, entries) in _native.logs().items()}
#: Logs of bytes have the first layout only.
LAYOUTS = ("naive", "padded", "dram-tail")

if TYPE_CHECKING:
    LogName = str
    EngineLogName = str
else:
    LogName = Literal[tuple(HAS_ENTRIES)]
    #: A storage engine has to tell the transactions in its log apart.
    EngineLogName = Literal[tuple(name for name, entries in HAS_ENTRIES.items() if entries)]
