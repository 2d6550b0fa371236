"""`afl doctor`."""

from __future__ import annotations

import click

from afl.base.settings import Settings
from afl.cli import exit_codes
from afl.cli.doctoring.surroundings import check_database, check_nats, check_python
from afl.cli.framework import Command
from afl.cli.running.connection import opened
from afl.cli.running.options import database_option, json_option
from afl.cli.terminal import Terminal, count
from afl.server.checks.findings import Finding, Grade
from afl.server.checks.workings import check_workings

_COLOURS = {Grade.OK: "32", Grade.WARN: "33", Grade.FAIL: "1;31"}


@click.command("doctor", cls=Command)
@click.option("--quiet", "-q", is_flag=True, help="Only say what is not in order.")
@click.option("--strict", is_flag=True, help="Fail on warnings too.")
@database_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, quiet: bool, strict: bool, database: str | None, as_json: bool
) -> None:
    """Check what AgentFlow needs, and say what to do.

    Fails if something keeps it from working; warnings are what keeps runs waiting. Nothing is
    changed, so it may be used as a health check.
    """
    terminal = ctx.ensure_object(Terminal)
    findings = _examine(database)
    if as_json:
        terminal.json(
            {
                "version": 1,
                "grade": _worst(findings).value,
                "findings": [finding.as_json() for finding in findings],
            }
        )
    else:
        _show(findings, terminal, quiet=quiet)
    worst = _worst(findings)
    if worst is Grade.FAIL or (strict and worst is Grade.WARN):
        ctx.exit(exit_codes.FAILED)


def _examine(database: str | None) -> list[Finding]:
    settings = Settings.load()
    url = database or settings.database_url
    about = list(check_database(url))
    findings = [check_python(), *about, check_nats(settings.nats_url)]
    if url is not None and all(finding.grade is not Grade.FAIL for finding in about):
        with opened(url) as operations:
            findings += check_workings(operations)
    return findings


def _worst(findings: list[Finding]) -> Grade:
    grades = [finding.grade for finding in findings]
    return next((grade for grade in (Grade.FAIL, Grade.WARN) if grade in grades), Grade.OK)


def _show(findings: list[Finding], terminal: Terminal, *, quiet: bool) -> None:
    for finding in findings:
        if quiet and finding.grade is Grade.OK:
            continue
        grade = f"{finding.grade.value:<4}"
        if terminal.colour_out:
            grade = f"\x1b[{_COLOURS[finding.grade]}m{grade}\x1b[0m"
        terminal.data(f"{grade}  {finding.check:<12}  {finding.text}\n")
        if finding.fix:
            terminal.data(f"      {'':<12}  -> {finding.fix}\n")
    wrong = [finding for finding in findings if finding.grade is not Grade.OK]
    if not quiet:
        total = count(len(findings), "check")
        terminal.say(f"{total}, {count(len(wrong), 'problem')}" if wrong else f"{total}, all well")
