"""Commands that take an option once: of several values the last would win, and the others be left unsaid."""

from collections import Counter
from typing import Any

import typer
import typer.core


class OnceCommand(typer.core.TyperCommand):
    """Refuses an option that is given again, but for those that may be, and switches of one direction."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a command line."""
        order: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        # Whoever completes a line in a shell is told nothing.
        for param, times in () if ctx.resilient_parsing else Counter(order).items():
            if times > 1 and param.param_type_name == "option" and not _may_be_repeated(param):
                raise typer.BadParameter("it is given more than once; leave one", ctx=ctx, param=param)
        return list(super().parse_args(ctx, args))


def _may_be_repeated(option: Any) -> bool:
    return option.multiple or (option.is_flag and not option.secondary_opts)
