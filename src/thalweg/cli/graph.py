"""`thalweg graph`: what is in a GraphDef, MetaGraph or SavedModel."""

from __future__ import annotations

import shutil
import subprocess

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thalweg.cli import graph_view
from thalweg.cli.graph_view import GraphFile


@click.group()
def graph() -> None:
    """Shows what is in a graph file: a GraphDef, MetaGraph or SavedModel, binary or text."""


def _read(path: str) -> list[GraphFile]:
    try:
        return graph_view.read(path)
    except (OSError, ValueError) as e:
        raise click.ClickException(str(e)) from None


@graph.command()
@click.argument("file", type=click.Path(exists=True))
def summary(file: str) -> None:
    """Ops, parameters, inputs, outputs, signatures and collections of the graphs in FILE."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)  # so that nothing is cut off
    for found in _read(file):
        _summary(console, found)


def _summary(console: Console, found: GraphFile) -> None:
    rows: list[tuple[str, ...]]
    graph_def = found.graph_def
    functions = len(graph_def.library.function)
    more = f", {functions} functions" if functions else ""
    console.print(
        f"[bold]{escape(found.title)}[/bold]: {len(graph_def.node)} nodes{more}, "
        f"producer {graph_def.versions.producer}", markup=True,
    )  # fmt: skip
    _table(
        console, "inputs", [(n.name, _placeholder(n)) for n in graph_def.node if n.op in graph_view._INPUTS]
    )
    _table(console, "outputs", [(n.name, n.op) for n in graph_view.outputs(graph_def)])
    parameters = graph_view.parameters(graph_def)
    for kind in ("variable", "constant"):
        these = [p for p in parameters if p[1] == kind]
        total = sum(p[3] or 0 for p in these)
        _table(
            console,
            f"{kind}s ({total:,} elements)",
            [(p[0], p[2], "?" if p[3] is None else f"{p[3]:,}") for p in these],
        )
    for key, signature in sorted(found.signatures.items()):
        rows = []
        for what, infos in (("in", signature.inputs), ("out", signature.outputs)):
            for name, info in sorted(infos.items()):
                shape = graph_view.shape_text(info.tensor_shape)
                rows.append((what, name, f"{graph_view.dtype_name(info.dtype)} {shape}", info.name))
        _table(console, f"signature {key} {signature.method_name}", rows)
    _table(console, "collections", [(k, _count(v)) for k, v in sorted(found.collections.items())])
    _table(console, "ops", [(op, str(n)) for op, n in graph_view.op_counts(graph_def).most_common()])
    unknown = graph_view.unknown_ops(graph_def)
    if unknown:
        console.print(f"[red]not built in thalweg:[/red] {escape(', '.join(unknown))}", markup=True)


def _placeholder(node: object) -> str:
    attr = node.attr  # type: ignore[attr-defined]
    return f"{graph_view.dtype_name(attr['dtype'].type)} {graph_view.shape_text(attr['shape'].shape)}"


def _count(collection: object) -> str:
    kind = collection.WhichOneof("kind")  # type: ignore[attr-defined]
    return "empty" if kind is None else f"{len(getattr(collection, kind).value)} in {kind}"


def _table(console: Console, title: str, rows: list[tuple[str, ...]]) -> None:
    if not rows:
        return
    console.print(f"[bold]{escape(title)}[/bold]", soft_wrap=True)
    table = Table(show_header=False, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


@graph.command()
@click.argument("file", type=click.Path(exists=True))
def text(file: str) -> None:
    """One line for each node of the graphs in FILE, functions included."""
    for found in _read(file):
        click.echo(f"# {found.title}")
        for line in graph_view.as_text(found.graph_def):
            click.echo(line)


@graph.command()
@click.argument("file", type=click.Path(exists=True))
@click.argument("output", type=click.Path(dir_okay=False))
@click.option("--limit", default=2000, show_default=True, help="The most nodes that are drawn.")
def svg(file: str, output: str, limit: int) -> None:
    """Draws the first graph in FILE by graphviz's dot. For an OUTPUT.dot it writes dot's input."""
    try:
        dot = graph_view.as_dot(_read(file)[0].graph_def, limit)
    except ValueError as e:
        raise click.ClickException(str(e)) from None
    if output.endswith(".dot"):
        with open(output, "w") as out:
            out.write(dot)
        return
    program = shutil.which("dot")
    if program is None:
        raise click.ClickException(
            "graphviz's dot is not installed (apt install graphviz). An OUTPUT that ends in .dot needs none."
        )
    result = subprocess.run([program, "-Tsvg", "-o", output], input=dot, text=True, capture_output=True)
    if result.returncode:
        raise click.ClickException(f"dot failed: {result.stderr.strip()}")
