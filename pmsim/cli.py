"""The command line: the same as the Python functions, with one line for whatever is wrong.

Exit status: 0 done, 1 a point, a claim or a crash check failed, 2 bad input, 130 interrupted.
"""

import errno
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
import typer.core

from pmsim.commands.calibrate import calibrate_command
from pmsim.commands.crash import crash_command
from pmsim.commands.list import list_command
from pmsim.commands.measure import measure_command
from pmsim.commands.once import OnceCommand
from pmsim.commands.platform import platform_app
from pmsim.commands.run import run_command
from pmsim.commands.trace import trace_app
from pmsim.commands.tune import tune_command
from pmsim.errors import ConfigError, PmsimError
from pmsim.exit_status import BAD_INPUT, FAILED, INTERRUPTED
from pmsim.validation.cli import validate
from pmsim.versions import package_version

# Typer carries a copy of Click or uses the installed one, by version: reach ClickException through a subclass.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]

#: Longer than the paths and names of people; what is longer is cut in messages.
_LONGEST_WORD = 400


def _bound(found: re.Match[str]) -> str:
    return f"choose at {'least' if found[1] == 'greater' else 'most'} {found[2]}"


#: Some versions of Typer speak in pydantic's words.
_REWORDED = (
    (re.compile("Value error, "), ""),
    (re.compile(r"Input should be a valid integer\b.*"), "it is not a whole number"),
    (re.compile(r"Input should be (greater|less) than or equal to (\d+)"), _bound),
)


class _InterruptedError(Exception):
    """Ctrl-C in a command that tells nothing more about it."""


class _Commands(typer.core.TyperGroup):
    """Some versions of Typer end at Ctrl-C without a word, so they must not see it."""

    def invoke(self, *arguments: Any, **named: Any) -> Any:
        """Run the command that the arguments name."""
        try:
            return super().invoke(*arguments, **named)
        except KeyboardInterrupt:
            raise _InterruptedError from None


app = typer.Typer(
    name="pmsim",
    cls=_Commands,
    help="Simulate storage engines on machines with DRAM, persistent memory and SSDs.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("run", cls=OnceCommand)(run_command)
app.command("tune", cls=OnceCommand)(tune_command)
app.command("list", cls=OnceCommand)(list_command)
app.command("validate", cls=OnceCommand)(validate)
app.command("crash", cls=OnceCommand)(crash_command)
app.command("calibrate", cls=OnceCommand)(calibrate_command)
app.command("measure", cls=OnceCommand)(measure_command)
app.add_typer(platform_app, name="platform")
app.add_typer(trace_app, name="trace")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pmsim {package_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Simulate storage engines on machines with DRAM, persistent memory and SSDs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int : the exit status.
    """
    try:
        with _terminated_like_ctrl_c():
            given = None if arguments is None else list(arguments)
            status = app(args=given, prog_name="pmsim", standalone_mode=False)
    except ConfigError as error:
        return _complain(str(error), BAD_INPUT)
    except PmsimError as error:
        return _complain(str(error), FAILED)
    except _USAGE_ERROR as error:
        return _misused(error)
    except (typer.Abort, KeyboardInterrupt, _InterruptedError):
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has left, for example `head`: nothing more to say.
        sys.stderr.close()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        place = error.filename or "the output"
        return _complain(f"{place}: cannot be written: {error.strerror}; free some space", FAILED)
    return status if isinstance(status, int) else 0


@contextmanager
def _terminated_like_ctrl_c() -> Iterator[None]:
    # What ends a batch job keeps what is finished, too, and leaves no worker behind.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _misused(error: Exception) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        return BAD_INPUT
    message = str(error.format_message())  # type: ignore[attr-defined]
    for theirs, ours in _REWORDED:
        message = theirs.sub(ours, message)
    context = getattr(error, "ctx", None)
    command = "pmsim" if context is None else context.command_path
    return _complain(f"{message.rstrip('.')}; see {command} --help", BAD_INPUT)


def _complain(message: str, status: int) -> int:
    sys.stderr.write(f"pmsim: {_printable(message)}\n")
    return status


def _printable(message: str) -> str:
    """Return a message as one line without what steers a terminal, words of any length cut."""
    words = (word if len(word) <= _LONGEST_WORD else f"{word[:_LONGEST_WORD]}..." for word in message.split())
    line = " ".join(words)
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in line)


if __name__ == "__main__":
    sys.exit(main())
