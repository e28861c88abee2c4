"""The commands of `spectral-mf`, put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spectral_mf import __version__
from spectral_mf.cli.demo import demo
from spectral_mf.cli.ending import BAD_INPUT, STDOUT_LOST, complain, end_on_sigterm, explained
from spectral_mf.cli.export import export
from spectral_mf.cli.info import info
from spectral_mf.cli.linear import linear
from spectral_mf.cli.outlets import outlets
from spectral_mf.cli.plot import plot
from spectral_mf.cli.resume import resume
from spectral_mf.cli.solve import solve
from spectral_mf.cli.sweep import sweep
from spectral_mf.cli.validate import validate


class Commands(TyperGroup):
    """Commands whose errors are sentences with an exit code, not tracebacks."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        with explained():
            return super().invoke(ctx)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"spectral-mf {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def spectral_mf(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Solve the mean-field limit of transformer self-attention on the circle, in Fourier space.

    Exit codes: 0 done, 1 a claim fails (validate), 2 bad input, 3 stopped early with rows kept, 4 stdout is full,
    130 interrupted with rows kept.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


for _command in (demo, solve, resume, sweep, info, plot, export, linear, validate):
    app.command()(_command)

_UsageError: Any = typer.BadParameter.__mro__[1]
"""What the parser raises. Some releases of typer carry their own copy of click, so it is reached through typer."""


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    end_on_sigterm()
    with outlets() as stdout:
        code = _run(arguments)
        stdout.flush()
        if stdout.failure is not None:
            complain(f"stdout cannot be written ({stdout.failure.strerror}); what went to files is whole.")
            return code or STDOUT_LOST
        return code


def _run(arguments: Sequence[str]) -> int:
    try:
        return int(app(list(arguments), prog_name="spectral-mf", standalone_mode=False) or 0)
    except _UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "spectral-mf"
        complain(f"{error.format_message().rstrip('.')} ('{command} --help' lists what there is).")
        return BAD_INPUT
