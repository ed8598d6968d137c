"""``placer calibrate``: compute times from measured steps, links from nccl-tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

import placer
from placer.cli import complete, shared
from placer.cli.folder import SOURCE_OPTIONS
from placer.cli.grouped import command
from placer.cli.inputs import read_given_job, read_machine
from placer.cli.options import flag, option, teller
from placer.cli.output import write_answer, write_document

if TYPE_CHECKING:
    from placer.calibrate.measurements import Given, Measurements


@command("placer calibrate megatron-log:run.out -t machine.yaml -j job.yaml")
@click.argument(
    "sources",
    nargs=-1,
    required=True,
    metavar="SOURCE...",
    shell_complete=complete.files,
)
@shared.topology()
@shared.job("For logs only.")
@shared.hosts
@option(
    "--test NAME",
    "Test of nccl-tests, where the file does not say it: all_reduce.",
    default="",
)
@shared.sources
@flag("--links", "Fit the efficiencies of tiers, too, to points that differ in layout.")
@shared.output("Write the machine with the fitted links here (nccl-tests and --links).")
@shared.quiet("No notes.")
@shared.formats("text", "json", "yaml")
def calibrate(sources: tuple[str, ...], format_name: str, **options: Any) -> None:
    """Fit compute times and link efficiencies to measurements.

    SOURCE is a file (- is stdin) of measured points. It names a machine, a job and two
    or more points: dp, micro_batches and step_time, or step_times of several runs. The
    first line printed goes into the job file. Intervals need repeated runs or more
    points. With --links the points may differ in layout (tp, pp, micro_batch, recompute
    and so on), and also tell the efficiencies of the machine's tiers.

    Or SOURCE is a log of Megatron-LM, torchtitan or MLPerf: megatron-log:FILE,
    torchtitan-log:FILE, mlperf-log:FILE. Then -t and -j say what ran. Several logs are
    runs of the same job.

    Or SOURCE is nccl-tests:FILE, what all_reduce_perf and the like print. Then -t is
    the machine, and the answer is the efficiencies and latencies of the tiers. What -o
    writes serves as -t and as --hardware.
    """
    from placer.calibrate.measurements import NCCL_TESTS, POINTS, open_source

    given = [open_source(source) for source in sources]
    kinds = {one.kind for one in given}
    if options["links"] and kinds != {POINTS}:
        raise click.UsageError("--links needs a file of points, of several layouts")
    if kinds == {NCCL_TESTS}:
        _hardware(given, format_name, options)
    elif POINTS not in kinds and NCCL_TESTS not in kinds:
        _compute(_logged(given, options), format_name)
    elif len(given) == 1 and not (options["topology"] or options["job"]):
        points = given[0].points()
        if options["links"]:
            _links(points, format_name, options["output"])
        else:
            _compute(points, format_name)
    else:
        raise click.UsageError(
            "give one file of points, which names machine and job, or logs of one job, "
            "or tables of nccl-tests"
        )


def _compute(measurements: Measurements, format_name: str) -> None:
    """Print the compute times that fit."""
    from placer.calibrate.fit import calibrate as fit
    from placer.calibrate.text import as_data, as_text, as_yaml

    found = fit(measurements)
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
    text = as_text if format_name == "text" else as_yaml
    write_answer(format_name, as_data(found), lambda: text(found))


def _links(measurements: Measurements, format_name: str, output: str) -> None:
    """Print what layouts say of work and links; write the machine if asked to."""
    from placer.calibrate.links import fit_links
    from placer.calibrate.text import links_data, links_line, links_text
    from placer.topology.write import compact_document

    found = fit_links(measurements)
    if output:
        write_document(output, compact_document(found.topology))
    if output != "-":
        text = links_text if format_name == "text" else links_line
        write_answer(format_name, links_data(found), lambda: text(found))


def _logged(logs: Sequence[Given], options: dict[str, Any]) -> Measurements:
    """Steps of logs as measurements of the job that ran."""
    from placer.calibrate.measurements import measured_by_logs
    from placer.topology.allocation import allocate

    if not (options["topology"] and options["job"]):
        raise click.UsageError("a log needs the machine (-t) and the job (-j) that ran")
    topology = read_machine(options)
    if options["hosts"]:
        topology = allocate(topology, options["hosts"])
    found, notes = measured_by_logs(logs, _job(options), topology)
    for note in notes:
        teller(options)(note)
    return found


def _job(options: dict[str, Any]) -> placer.Job:
    """The job of ``-j``; its compute time is what is asked for, so any will do."""
    from placer.formats.jobs.job import open_source

    timed = options["tflops"] or options["micro_batch_time"]
    plain = any(isinstance(open_source(job), placer.Job) for job in options["job"])
    stand_in = {} if timed or plain else {"micro_batch_time": "1s"}
    named = {name: options[name] for name in SOURCE_OPTIONS} | stand_in
    return read_given_job(options | named)


def _hardware(
    given: Sequence[Given], format_name: str, options: dict[str, Any]
) -> None:
    """Print what the tables say of the machine's links; write it if asked to."""
    from placer.calibrate.hardware import fit_hardware
    from placer.calibrate.text import hardware_data, hardware_text
    from placer.topology.write import compact_document

    if not options["topology"]:
        raise click.UsageError("tables of nccl-tests need the machine (-t) that ran")
    topology = read_machine(options)
    tables = [table for one in given for table in one.tables(options["test"])]
    fit = fit_hardware(topology, tables)
    if options["output"]:
        write_document(options["output"], compact_document(fit.topology))
    if options["output"] != "-":
        write_answer(format_name, hardware_data(fit), lambda: hardware_text(fit))
