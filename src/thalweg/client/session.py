"""Session: the client's side of running a graph.

The work from a (fetches, feeds) signature to a program is done once and cached by the structure of the
call; a run that finds it costs a dictionary look-up, the conversion of the feeds, and the program.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorboard.compat.proto import config_pb2

from thalweg.base import errors, origin
from thalweg.client.feeds import Feeder, expand_feeds, is_composite_key
from thalweg.client.fetches import FetchPlan
from thalweg.client.partial_run import PartialRuns
from thalweg.graph import operation
from thalweg.graph.convert import get_default_graph
from thalweg.graph.graph import Graph
from thalweg.graph.graphdef import graph_def
from thalweg.graph.operation import Operation, Tensor
from thalweg.graph.scope_stacks import default_sessions
from thalweg.plan.pipeline import PlanOptions
from thalweg.runtime.device import Device, DeviceConfig
from thalweg.runtime.master import Master
from thalweg.runtime.metadata import StepRecorder
from thalweg.runtime.partition_graphs import partition_graphs
from thalweg.runtime.partitions import AnyProgram
from thalweg.runtime.step import Step
from thalweg.runtime.worker import Worker

_log = logging.getLogger("thalweg")

#: runs in a row that each found new operations in the graph, after which the program is told
GROWTH_RUNS = 30


class _Call:
    """A signature, ready to run: its program, a converter per feed, and how results are put together.

    direct: every key of the feed_dict stands for one tensor, none for a tensor that another one stands for.
    mutations: the graph's, before it was planned.
    """

    __slots__ = ("direct", "feeders", "mutations", "program", "rebuild")

    def __init__(
        self, program: AnyProgram, feeders: list[Feeder], rebuild: Any, direct: bool, mutations: int
    ) -> None:
        self.program = program
        self.feeders = feeders
        self.rebuild = rebuild
        self.direct = direct
        self.mutations = mutations


#: the sessions of this process, for reset
_local_sessions: weakref.WeakSet[BaseSession] = weakref.WeakSet()
_local_lock = threading.Lock()


class BaseSession:
    """What Session and InteractiveSession share."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        """target: "" runs in this process. graph: the default graph where None. config: a ConfigProto."""
        if target:
            raise errors.UnimplementedError(
                None, None, f"Session target {target!r}: remote sessions are not built yet; use target ''"
            )
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
        if config is not None and not isinstance(config, config_pb2.ConfigProto):
            raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
        self._graph = graph if graph is not None else get_default_graph()
        self._config = config
        self._target = target
        self._master = Master(self._graph, Worker(devices=device_config(config)), plan_options(config))
        if config is not None and config.log_device_placement:
            _log_mapping(self._master.worker.devices.values())
        self._timeout_ms = config.operation_timeout_in_ms if config is not None else 0
        self._calls: dict[Any, _Call] = {}
        self._growth = _Growth(self._graph)
        self._partial_runs = PartialRuns(self._graph, self._master, self._run)
        with _local_lock:
            _local_sessions.add(self)

    @property
    def graph(self) -> Graph:
        """The graph that the session runs."""
        return self._graph

    @property
    def graph_def(self) -> Any:
        """The graph as a GraphDef."""
        return graph_def(self._graph)

    @property
    def sess_str(self) -> str:
        """The target."""
        return self._target

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices that steps of this session can use."""
        return [
            DeviceAttributes(d.name, d.type.name, d.memory_limit, d.incarnation)
            for d in self._master.worker.devices.values()
        ]

    def close(self) -> None:
        """Ends the steps under way with CancelledError; frees what the session holds."""
        self._master.close()
        self._calls.clear()
        self._master.worker.close()

    def as_default(self) -> Any:
        """A context manager that makes this the default session of the thread."""
        return default_sessions.entered(self)

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs what `fetches` needs and returns their values in the structure of `fetches`.

        fetches: a nest of tensors, operations (None in the result), names, variables, sparse tensors.
        feed_dict: values for tensors, in place of computing them.
        options: RunOptions (timeout_in_ms, trace_level); run_metadata: a RunMetadata to fill.
        Errors: tf.errors.* from the graph; ValueError, TypeError for bad fetches and feeds; RuntimeError on
        a closed session.
        """
        key: Any = None
        try:
            key = (_structure(fetches), tuple(feed_dict) if feed_dict else None)
            call = self._calls.get(key)
        except TypeError:  # something in it can't be hashed, or is wrong
            key = call = None
        if call is None or call.mutations != self._graph._mutations:
            call, feed_dict = self._prepare(fetches, feed_dict)
            if key is not None and not self._master.closed:
                self._calls[key] = call
        elif not call.direct:
            feed_dict = expand_feeds(self._graph, feed_dict)
        values = (
            [feeder(value) for feeder, value in zip(call.feeders, feed_dict.values(), strict=True)]
            if feed_dict
            else []
        )
        if options is None and run_metadata is None:
            return call.rebuild(self._run(call.program, values, Step(self._timeout_ms)))
        return call.rebuild(self._run_with(call.program, values, options, run_metadata))

    def _run(self, program: AnyProgram, values: list[Any], step: Step) -> list[Any]:
        try:
            return self._master.run(program, values, step)
        except errors.OpError as e:
            raise self._in_users_terms(e) from e.__cause__

    def _run_with(self, program: AnyProgram, values: list[Any], options: Any, metadata: Any) -> list[Any]:
        timeout = self._timeout_ms
        if options is not None:
            if not isinstance(options, config_pb2.RunOptions):
                raise TypeError(f"options must be a tf.RunOptions, but got {type(options)}")
            timeout = options.timeout_in_ms or timeout
        if metadata is not None and not isinstance(metadata, config_pb2.RunMetadata):
            raise TypeError(f"run_metadata must be a tf.RunMetadata, but got {type(metadata)}")
        step = Step(timeout)
        traced = options is not None and options.trace_level > config_pb2.RunOptions.NO_TRACE
        if metadata is not None and traced:
            step.stats = StepRecorder(self._master.worker)
        results = self._run(program, values, step)
        if metadata is not None:
            metadata.Clear()
            if step.stats is not None:
                step.stats.fill(metadata.step_stats)
            if traced or (options is not None and options.output_partition_graphs):
                metadata.partition_graphs.extend(partition_graphs(program.plan))
        return results

    def _prepare(self, fetches: Any, feed_dict: Any) -> tuple[_Call, Any]:
        """The call of a signature that has not been seen, and its feeds by tensor, in order."""
        if self._master.closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._graph.version == 0:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )
        self._growth.look()
        mutations = self._graph._mutations
        feeds = expand_feeds(self._graph, feed_dict or {})
        plan = FetchPlan(self._graph, fetches)
        tensors = list(feeds)
        try:
            program = self._master.prepare(tensors, plan.tensors, plan.targets)
        except errors.OpError as e:
            raise self._in_users_terms(e) from e.__cause__
        feeders = [Feeder(t) for t in tensors]
        direct = len(feeds) == len(feed_dict or ()) and not any(map(is_composite_key, feed_dict or ()))
        return _Call(program, feeders, plan.rebuild, direct, mutations), feeds

    def _in_users_terms(self, error: errors.OpError) -> errors.OpError:
        """The error, with its operation looked up in the user's graph (plans work on copies)."""
        op = error.op
        if op is not None and getattr(op, "graph", None) is not self._graph:
            mine = self._graph._by_name.get(op.name)
            if mine is not None:
                return type(error)(None, mine, error.message, error.error_code)
        return error

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of the feeds, in order, that runs `fetches`: less work per call than run.

        accept_options: it also takes `options` and `run_metadata`.
        """
        feed_list = list(feed_list or [])
        if any(map(is_composite_key, feed_list)):
            raise ValueError("feed_list takes tensors only: for a sparse tensor give its three parts")
        tensors = list(expand_feeds(self._graph, dict.fromkeys(feed_list)))
        if len(tensors) != len(feed_list):
            raise ValueError("feed_list holds a tensor twice")
        call, _ = self._prepare(fetches, dict.fromkeys(tensors))
        feeders, rebuild = call.feeders, call.rebuild

        def check(args: tuple[Any, ...]) -> list[Any]:
            if len(args) != len(feeders):
                raise TypeError(f"the callable takes {len(feeders)} feeds, got {len(args)}")
            return [f(a) for f, a in zip(feeders, args, strict=True)]

        def run(*args: Any) -> Any:
            return rebuild(self._run(call.program, check(args), Step(self._timeout_ms)))

        def run_with(*args: Any, options: Any = None, run_metadata: Any = None) -> Any:
            return rebuild(self._run_with(call.program, check(args), options, run_metadata))

        return run_with if accept_options else run

    def _repeated(self, target: Operation) -> Callable[[], None]:
        """A function that runs a step for an operation that a thread runs over and over.

        A call may do several steps at once, where nobody could tell them from single ones: as if the thread
        had been called so often, and nobody else had come in between.
        """
        call, _ = self._prepare(target, None)

        def run() -> None:
            try:
                self._master.run_repeated(call.program, self._timeout_ms)
            except errors.OpError as e:
                raise self._in_users_terms(e) from e.__cause__

        return run

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> Any:
        """Starts a step that runs in parts, and returns its handle.

        fetches, feeds: all that partial_run will ask for and feed. No other session knows the handle.
        """
        return self._partial_runs.start(fetches, feeds)

    def partial_run(self, handle: Any, fetches: Any, feed_dict: Any = None) -> Any:
        """Goes on with a step: feeds more, and returns what can be computed by now.

        Each node runs once in the whole step, when a fetch first needs it. InvalidArgumentError for what was
        not set up, or was fed or fetched before; RuntimeError for fetches that are operations: those that
        were set up run with the first part that feeds all they need.
        """
        return self._partial_runs.go_on(handle, fetches, feed_dict)


class _Growth:
    """Watches for programs that add operations before every run."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._version = -1
        self._count = 0
        self._told = False
        self._lock = threading.Lock()

    def look(self) -> None:
        """Called for each signature that was not cached; warns once after GROWTH_RUNS that grew."""
        with self._lock:
            version = self._graph.version
            if self._version >= 0 and version > self._version:
                self._count += 1
            elif version == self._version:
                self._count = 0
            self._version = version
            if self._count < GROWTH_RUNS or self._told:
                return
            self._told = True
        last = self._graph._ops[-1]
        _log.warning(
            "the graph grew before each of the last %d runs: each run then needs a new plan. The newest "
            "operation is %s '%s', made at %s. Build the graph once, before the loop.",
            self._count, last.type, last.name, origin.describe(last.origin),
        )  # fmt: skip


def _structure(fetches: Any) -> Any:
    """A fetch structure as a value to look up by: different where results are put together differently."""
    kind = type(fetches)
    if kind is Tensor or kind is Operation:
        return fetches
    if kind is list or isinstance(fetches, tuple):
        return (kind, *map(_structure, fetches))
    if isinstance(fetches, dict):
        return (kind, tuple(fetches), *map(_structure, fetches.values()))
    return fetches


def plan_options(config: Any) -> PlanOptions:
    """Which passes a ConfigProto asks for.

    graph_options.optimizer_options: global_jit_level OFF runs op by op; opt_level L0 rewrites nothing.
    rewrite_options.constant_folding, common_subgraph_elimination, arithmetic_optimization and
    disable_meta_optimizer are honoured; loop_optimization OFF leaves all loops and conditionals to the
    executor.
    graph_options.enable_recv_scheduling lets receives of small values wait too, not only of large ones;
    enable_bfloat16_sendrecv halves the bytes of float32 between tasks.
    """
    if config is None:
        return PlanOptions()
    optimizer = config.graph_options.optimizer_options
    rewrite = config.graph_options.rewrite_options
    plain = optimizer.opt_level == config_pb2.OptimizerOptions.L0 or rewrite.disable_meta_optimizer
    off = type(rewrite).OFF
    return PlanOptions(
        fold=not plain and rewrite.constant_folding != off,
        merge=not plain and rewrite.common_subgraph_elimination != off,
        simplify=not plain and rewrite.arithmetic_optimization != off,
        soft_placement=config.allow_soft_placement,
        log_placement=config.log_device_placement,
        cluster=optimizer.global_jit_level != config_pb2.OptimizerOptions.OFF,
        loops=not plain and rewrite.loop_optimization != off,
        compress="tasks" if config.graph_options.enable_bfloat16_sendrecv else "",
        schedule_receives=not plain or config.graph_options.enable_recv_scheduling,
        schedule_all=config.graph_options.enable_recv_scheduling,
    )


def device_config(config: Any) -> DeviceConfig:
    """What a ConfigProto asks of devices. gpu_options that are not named here have no counterpart in JAX."""
    if config is None:
        return DeviceConfig()
    gpu = config.gpu_options
    return DeviceConfig(
        count=dict(config.device_count),
        gpu_visible=gpu.visible_device_list,
        gpu_memory_fraction=gpu.per_process_gpu_memory_fraction,
        gpu_allow_growth=gpu.allow_growth,
    )


def _log_mapping(devices: Iterable[Device]) -> None:
    """Which accelerators there are, in TensorFlow's form."""
    accelerators = [d for d in devices if not d.type.hosts]
    lines = [f"\n{d.name} -> device: {d.index}, name: {d.attributes['kind']}" for d in accelerators]
    _log.info("Device mapping: %s", "".join(lines) or "no known devices.")


class DeviceAttributes:
    """A device, as list_devices reports it."""

    def __init__(self, name: str, device_type: str, memory_limit_bytes: int, incarnation: int) -> None:
        self.name = name
        self.device_type = device_type
        self.memory_limit_bytes = memory_limit_bytes
        self.incarnation = incarnation

    def __repr__(self) -> str:
        numbers = f"{self.memory_limit_bytes}, {self.incarnation}"
        return f"_DeviceAttributes({self.name}, {self.device_type}, {numbers})"


class Session(BaseSession):
    """A connection to what runs a graph. A context manager: default graph and session, closed at the end."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._contexts: list[Any] = []

    def __enter__(self) -> Session:
        if self._master.closed:
            raise RuntimeError("Session cannot be re-entered once closed.")
        contexts = [self._graph.as_default(), self.as_default()]
        for context in contexts:
            context.__enter__()
        self._contexts.append(contexts)
        return self

    def __exit__(self, *details: Any) -> None:
        try:
            for context in reversed(self._contexts.pop()):
                context.__exit__(*details)
        finally:
            self.close()

    @staticmethod
    def reset(target: str, containers: Sequence[str] | None = None, config: Any = None) -> None:
        """Empties the named containers (all of them where none is named) of the sessions in this process."""
        if target:
            raise errors.UnimplementedError(None, None, f"reset of {target!r}: servers are not built yet")
        with _local_lock:
            sessions = list(_local_sessions)
        for session in sessions:
            session._master.worker.resources.clear(containers or ())


class InteractiveSession(BaseSession):
    """A Session that is the default from its construction on, for use in a shell."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._default = (
            [self._graph.as_default(), self.as_default()] if graph is not None else [self.as_default()]
        )
        default_sessions.enforce_nesting = False
        for context in self._default:
            context.__enter__()

    def close(self) -> None:
        """Ends the session and takes it off the stack of defaults."""
        super().close()
        for context in reversed(self._default):
            context.__exit__(None, None, None)
        self._default = []


def get_default_session() -> BaseSession | None:
    """The innermost default session of the thread, or None."""
    return default_sessions.top()


def _session_for(what: str, graph: Graph, session: Any) -> Any:
    if session is None:
        session = get_default_session()
        if session is None:
            raise ValueError(
                f"Cannot {what} using the default session: No default session is registered. Use `with "
                "sess.as_default()` or pass an explicit session."
            )
    if session.graph is not graph:
        raise ValueError(
            f"Cannot use the {'given' if session else 'default'} session to {what}: its graph is another one "
            "than the tensor's or operation's."
        )
    return session


def _eval(tensor: Tensor, feed_dict: Any, graph: Graph, session: Any) -> Any:
    return _session_for("evaluate tensor", graph, session).run(tensor, feed_dict)


def _run_op(op: Operation, feed_dict: Any, graph: Graph, session: Any) -> None:
    _session_for("execute operation", graph, session).run(op, feed_dict)


operation._hooks["eval"] = _eval
operation._hooks["run"] = _run_op
