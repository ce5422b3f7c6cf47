"""`thalweg place`: where a graph's nodes would run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from google.protobuf import text_format

import thalweg as tf
from thalweg.plan.placement.cluster import ClusterDescription
from thalweg.plan.placement.costs import CostModel
from thalweg.tools.placement import explain, format_placement
from thalweg.tools.placement_picture import draw

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUT = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("graph", type=_FILE)
@click.option("--fetch", "fetches", multiple=True, help="A node or tensor that the step fetches; may be "
              "given several times. Without: all nodes that nobody takes.")  # fmt: skip
@click.option("--cluster", type=_FILE, help="A cluster's description (JSON). Without: this machine.")
@click.option("--cpus", type=click.IntRange(1), default=1, help="This machine's virtual CPU devices.")
@click.option("--costs", type=_FILE, help="Measured costs, as tf.placement.CostModel.to_json writes them.")
@click.option("--soft", is_flag=True, help="Soft placement: nodes may go elsewhere than they ask.")
@click.option("--nodes", type=click.IntRange(0), default=30, help="How many nodes to show.")
@click.option("--json", "json_file", type=_OUT, help="Write the whole report there.")
@click.option("--svg", type=_OUT, help="Write a picture of the step there.")
def place(
    graph: Path, fetches: tuple[str, ...], cluster: Path | None, cpus: int, costs: Path | None, soft: bool,
    nodes: int, json_file: Path | None, svg: Path | None,
) -> None:  # fmt: skip
    """Says where the nodes of GRAPH would run, why, and how long a step would take.

    GRAPH is a GraphDef, binary (.pb) or text (.pbtxt). Nothing is run.
    """
    try:
        loaded = _load(graph)
        placement = explain(
            loaded,
            list(fetches) or _sinks(loaded),
            None if cluster is None else ClusterDescription.from_json(cluster.read_bytes()),
            tf.ConfigProto(allow_soft_placement=soft, device_count={"CPU": cpus}),
            None if costs is None else CostModel.from_json(costs.read_bytes()),
        )
    except (tf.errors.OpError, ValueError, KeyError, TypeError) as e:
        raise click.ClickException(str(e)) from None
    click.echo(format_placement(placement, nodes), nl=False)
    try:
        if json_file is not None:
            json_file.write_text(placement.to_json())
        if svg is not None:
            svg.write_text(draw(placement, graph.name))
    except OSError as e:
        raise click.ClickException(str(e)) from None


def _load(path: Path) -> Any:
    """The graph in a file. ValueError where there is none."""
    message = tf.GraphDef()
    data = path.read_bytes()
    try:
        if path.suffix in (".pbtxt", ".txt"):
            text_format.Parse(data.decode(), message)
        else:
            message.ParseFromString(data)
    except Exception as e:  # the parsers' errors have no class in common
        raise ValueError(f"{path} is not a GraphDef: {e}") from None
    if not message.node:
        raise ValueError(f"{path} has no nodes: it is not a GraphDef, or an empty one")
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(message, name="")
    return graph


def _sinks(graph: Any) -> list[Any]:
    """The operations that nobody takes anything from."""
    return [
        op for op in graph.get_operations()
        if not op._control_outputs and not any(t._consumers for t in op.outputs)
    ]  # fmt: skip
