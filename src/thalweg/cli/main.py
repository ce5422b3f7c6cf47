"""The `thalweg` command: scripts, placement, files, what this machine offers."""

from __future__ import annotations

import os
import runpy
import sys

import click

import thalweg
from thalweg.cli.checkpoint import checkpoint
from thalweg.cli.graph import graph
from thalweg.cli.place import place
from thalweg.cli.redirect import install
from thalweg.graph.registry import all_records


@click.group()
@click.version_option(thalweg.version.THALWEG_VERSION, prog_name="thalweg")
def main() -> None:
    """TensorFlow 1.x graph programs on XLA."""


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(script: str, args: tuple[str, ...]) -> None:
    """Runs a TensorFlow 1.x SCRIPT as it is: `import tensorflow` gives thalweg.

    ARGS go to the script.
    """
    install()
    sys.argv = [script, *args]
    sys.path[0:0] = [os.path.dirname(os.path.abspath(script))]
    runpy.run_path(script, run_name="__main__")


@main.command()
def devices() -> None:
    """Lists the devices that steps can run on."""
    with thalweg.Session(graph=thalweg.Graph()) as session:
        for device in session.list_devices():
            click.echo(f"{device.name}  {device.device_type}  {device.memory_limit_bytes} bytes")


@main.command()
def ops() -> None:
    """Lists the ops that are built."""
    for name in sorted(all_records()):
        click.echo(name)


main.add_command(place)
main.add_command(checkpoint)
main.add_command(graph)

if __name__ == "__main__":
    main()
