"""What kinds and parts with a storage engine have in common: the CPU costs beside counted instructions.

Calibrated on two numbers of main-memory at 1 GB, on the emulator of the paper: 3.6 M transactions/s of
YCSB-RO, one operation each, and 88 k of TPC-C, some forty each (van Renen et al. 2018, section 5.3;
docs/calibration.md).
"""

from typing import Annotated

from pydantic import Field

from pmsim.kinds.types import CountOrZero

OPERATION_CYCLES = 211
TRANSACTION_CYCLES = 250

OperationCycles = Annotated[
    CountOrZero,
    Field(
        le=1_000_000,
        description="CPU cycles of an operation besides those of its instructions; a calibration",
    ),
]

TransactionCycles = Annotated[
    CountOrZero,
    Field(
        le=1_000_000,
        description="CPU cycles of a transaction besides those of its operations; a calibration",
    ),
]
