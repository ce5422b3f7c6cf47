"""A model as a function: what tf.contrib.predictor was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from thalweg.client.session import Session
from thalweg.graph.graph import Graph
from thalweg.library.saved_model import signature_constants, tag_constants
from thalweg.library.saved_model.loader import load
from thalweg.library.saved_model.utils import get_tensor_from_tensor_info


class Predictor:
    """A signature of a SavedModel, in a session of its own: predictor({"x": value}) -> {"y": value}.

    ValueError for a signature that the model doesn't have; both on inputs that the signature doesn't take.
    """

    def __init__(
        self,
        export_dir: Any,
        signature_def_key: str | None = None,
        signature_def: Any = None,
        tags: Iterable[str] | None = None,
        graph: Graph | None = None,
        config: Any = None,
    ) -> None:
        if signature_def_key is not None and signature_def is not None:
            raise ValueError("Only one of signature_def_key and signature_def may be specified.")
        self._graph = graph or Graph()
        self._session = Session(graph=self._graph, config=config)
        tags = [tag_constants.SERVING] if tags is None else tags
        with self._graph.as_default():
            meta_graph_def = load(self._session, tags, export_dir)
        if signature_def is None:
            key = signature_def_key or signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
            if key not in meta_graph_def.signature_def:
                known = sorted(meta_graph_def.signature_def)
                raise ValueError(f'Got signature_def_key "{key}". Available signatures are {known}.')
            signature_def = meta_graph_def.signature_def[key]
        self._feeds = {
            k: get_tensor_from_tensor_info(v, self._graph) for k, v in signature_def.inputs.items()
        }
        self._fetches = {
            k: get_tensor_from_tensor_info(v, self._graph) for k, v in signature_def.outputs.items()
        }

    @property
    def graph(self) -> Graph:
        """The graph that the model is in."""
        return self._graph

    @property
    def session(self) -> Session:
        """The session that it runs in."""
        return self._session

    @property
    def feed_tensors(self) -> dict[str, Any]:
        """The tensors that it takes, by name."""
        return self._feeds

    @property
    def fetch_tensors(self) -> dict[str, Any]:
        """The tensors that it gives, by name."""
        return self._fetches

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the model. ValueError for names that the signature doesn't have."""
        unknown = sorted(set(input_dict) - set(self._feeds))
        if unknown:
            raise ValueError(
                f"Got unexpected keys in input_dict: {unknown}. Expected keys are: {sorted(self._feeds)}"
            )
        feeds = {self._feeds[k]: v for k, v in input_dict.items()}
        result: dict[str, Any] = self._session.run(self._fetches, feeds)
        return result


def from_saved_model(
    export_dir: Any,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    tags: Iterable[str] | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """A SavedModel's signature as a function of NumPy arrays."""
    return Predictor(export_dir, signature_def_key, signature_def, tags, graph, config)
