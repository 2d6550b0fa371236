"""Every way in which a command can fail, to words for the user and an exit code."""

from __future__ import annotations

import os
import sys
import traceback

import click

from afl.base.errors import AflError, ConfigError
from afl.cli import exit_codes
from afl.cli.errors import CommandError, ReaderGoneError
from afl.cli.terminal import Terminal


def report_failure(error: Exception, terminal: Terminal) -> int:
    """Tell the user what failed, where, why and what helps. Returns the exit code."""
    if isinstance(error, ReaderGoneError):
        _silence_streams()
        return exit_codes.READER_GONE
    if terminal.debug:
        traceback.print_exception(error)
    match error:
        case click.exceptions.NoArgsIsHelpError():
            # whoever names a group without a command is looking for one: that is no mistake
            terminal.say(error.format_message())
            return exit_codes.USAGE
        case click.UsageError():
            return _usage(error, terminal)
        case click.Abort():
            terminal.error("interrupted")
            return exit_codes.INTERRUPTED
        case click.ClickException():
            terminal.error(error.format_message())
            return exit_codes.USAGE
        case CommandError():
            terminal.error(error.message)
            if error.help:
                terminal.help(error.help)
            return error.exit_code
        case ConfigError():
            terminal.error(error.message)
            return exit_codes.USAGE
        case AflError():
            terminal.error(error.message)
            return exit_codes.FAILED
        case OSError():
            terminal.error(_os_error(error))
            return exit_codes.UNREADABLE
    return _internal(error, terminal)


def _usage(error: click.UsageError, terminal: Terminal) -> int:
    terminal.error(error.format_message())
    command = error.ctx.command_path if error.ctx is not None else "afl"
    terminal.help(f"`{command} --help` shows how it is used")
    return exit_codes.USAGE


def _os_error(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def _internal(error: Exception, terminal: Terminal) -> int:
    lines = str(error).splitlines()
    what = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    terminal.error(f"AgentFlow made a mistake: {what}")
    if not terminal.debug:
        terminal.help(
            "run the command again with `--debug` to see where, and please report what it shows"
        )
    return exit_codes.INTERNAL


def _silence_streams() -> None:
    """Nobody reads what is still buffered, and Python would complain about it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
