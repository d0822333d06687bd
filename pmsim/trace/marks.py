"""Marks of operations of the workload: each that ends has begun, and none begins within another."""

from pathlib import Path

import numpy as np

from pmsim.errors import ConfigError
from pmsim.trace.micro_ops import is_one_of
from pmsim.trace.rows import Rows


class Marks:
    """Checks the marks of a table, thread by thread.

    A thread whose operations only end is whole: it counts them and has no latencies, as recorded runs of some
    kinds. An operation that the end of the file cuts off is not measured, as in recorded runs.

    Parameters
    ----------
    file : Path
        Named in messages.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        # By thread, from its first operation_begin on: the row of the one that has not ended, or 0.
        self._begun: dict[int, int] = {}
        self.ended = 0  #: operations so far

    def add(self, rows: Rows) -> None:
        """Look at rows, in the order of the file.

        Raises
        ------
        ConfigError : one that ends what has not begun, or begins what has not ended.
        """
        begins = is_one_of(rows.kind, "operation_begin")
        ends = is_one_of(rows.kind, "operation_end")
        self.ended += int(np.count_nonzero(ends))
        if rows.batch is not None:  # an export: recorded runs of some kinds begin an operation anew
            return
        marks = np.flatnonzero(begins | ends)
        for thread in np.unique(rows.thread[marks]).tolist():
            mine = marks[rows.thread[marks] == thread]
            begin = begins[mine]
            if thread not in self._begun:
                if not begin.any():
                    continue
                mine, begin = mine[np.argmax(begin) :], begin[np.argmax(begin) :]
            open_row = self._begun.get(thread, 0)
            wrong = np.flatnonzero(begin == np.concatenate([[open_row > 0], begin[:-1]]))
            if len(wrong):
                first = int(wrong[0])
                since = rows.first + int(mine[first - 1]) if first else open_row
                self._refuse(thread, rows.first + int(mine[first]), since if begin[first] else 0)
            self._begun[thread] = rows.first + int(mine[-1]) if begin[-1] else 0

    def finish(self) -> None:
        """Look back at the end of the file.

        Raises
        ------
        ConfigError : operations begin and none ends.
        """
        if self._begun and not self.ended:
            row = min(filter(None, self._begun.values()))
            raise ConfigError(
                f"{self._file}: kind: row {row}: operation_begin, and no operation ends in this file; add "
                "operation_end, or leave out the marks"
            )

    def _refuse(self, thread: int, row: int, since: int) -> None:
        where = f"{self._file}: kind: row {row}"
        if since:
            raise ConfigError(
                f"{where}: operation_begin, and the one of row {since} has not ended on thread {thread}; add "
                "operation_end before it"
            )
        raise ConfigError(
            f"{where}: operation_end, and none has begun on thread {thread}; add operation_begin before it"
        )
