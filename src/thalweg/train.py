"""tf.train: optimizers, input, checkpoints. Names from thalweg.library; what each does is said there."""

from tensorboard.compat.proto.cluster_pb2 import ClusterDef, JobDef
from tensorboard.compat.proto.saver_pb2 import SaverDef

from thalweg.base.cluster_spec import ClusterSpec
from thalweg.formats.event_files import read_events as summary_iterator
from thalweg.formats.protos.example_pb2 import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from thalweg.library import queue_runner
from thalweg.library.batching import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from thalweg.library.checkpoint_state import (
    checkpoint_exists,
    generate_checkpoint_state_proto,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from thalweg.library.checkpoint_utils import (
    NewCheckpointReader,
    checkpoints_iterator,
    init_from_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from thalweg.library.coordinator import Coordinator, LooperThread
from thalweg.library.device_setter import replica_device_setter
from thalweg.library.file_ops import match_filenames_once
from thalweg.library.graph_io import write_graph
from thalweg.library.input_producers import (
    input_producer,
    limit_epochs,
    range_input_producer,
    slice_input_producer,
    string_input_producer,
)
from thalweg.library.learning_rate_decay import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    noisy_linear_cosine_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from thalweg.library.meta_graph import export_meta_graph
from thalweg.library.meta_graph_import import import_meta_graph
from thalweg.library.missing import missing
from thalweg.library.moving_averages import ExponentialMovingAverage
from thalweg.library.optimizers.adadelta import AdadeltaOptimizer
from thalweg.library.optimizers.adagrad import AdagradOptimizer
from thalweg.library.optimizers.adagrad_da import AdagradDAOptimizer
from thalweg.library.optimizers.adam import AdamOptimizer
from thalweg.library.optimizers.ftrl import FtrlOptimizer
from thalweg.library.optimizers.gradient_descent import GradientDescentOptimizer
from thalweg.library.optimizers.momentum import MomentumOptimizer
from thalweg.library.optimizers.optimizer import Optimizer
from thalweg.library.optimizers.proximal_adagrad import ProximalAdagradOptimizer
from thalweg.library.optimizers.proximal_gradient_descent import ProximalGradientDescentOptimizer
from thalweg.library.optimizers.rmsprop import RMSPropOptimizer
from thalweg.library.optimizers.sync_replicas import SyncReplicasOptimizer
from thalweg.library.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from thalweg.library.saver import Saver
from thalweg.library.training.basic_loops import basic_train_loop
from thalweg.library.training.checkpoint_hook import CheckpointSaverHook, CheckpointSaverListener
from thalweg.library.training.hook_timers import SecondOrStepTimer
from thalweg.library.training.logging_hooks import (
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    StopAtStepHook,
)
from thalweg.library.training.monitored_session import (
    MonitoredSession,
    MonitoredTrainingSession,
    SingularMonitoredSession,
)
from thalweg.library.training.scaffold import Scaffold
from thalweg.library.training.session_creators import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)
from thalweg.library.training.session_manager import SessionManager
from thalweg.library.training.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from thalweg.library.training.summary_hooks import ProfilerHook, StepCounterHook, SummarySaverHook
from thalweg.library.training.supervisor import Supervisor
from thalweg.library.training_util import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)
from thalweg.library.warm_starting import VocabInfo, warm_start

__getattr__ = missing(__name__)

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "BytesList",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "ChiefSessionCreator",
    "ClusterDef",
    "ClusterSpec",
    "Coordinator",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FeedFnHook",
    "FinalOpsHook",
    "FloatList",
    "FtrlOptimizer",
    "GlobalStepWaiterHook",
    "GradientDescentOptimizer",
    "Int64List",
    "JobDef",
    "LoggingTensorHook",
    "LooperThread",
    "MomentumOptimizer",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "NewCheckpointReader",
    "Optimizer",
    "ProfilerHook",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "QueueRunner",
    "RMSPropOptimizer",
    "Saver",
    "SaverDef",
    "Scaffold",
    "SecondOrStepTimer",
    "SequenceExample",
    "SessionCreator",
    "SessionManager",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "SingularMonitoredSession",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "Supervisor",
    "SyncReplicasOptimizer",
    "VocabInfo",
    "WorkerSessionCreator",
    "add_queue_runner",
    "assert_global_step",
    "basic_train_loop",
    "batch",
    "batch_join",
    "checkpoint_exists",
    "checkpoints_iterator",
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "exponential_decay",
    "export_meta_graph",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "import_meta_graph",
    "init_from_checkpoint",
    "input_producer",
    "inverse_time_decay",
    "latest_checkpoint",
    "limit_epochs",
    "linear_cosine_decay",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "match_filenames_once",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
    "queue_runner",
    "range_input_producer",
    "remove_checkpoint",
    "replica_device_setter",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
    "summary_iterator",
    "update_checkpoint_state",
    "warm_start",
    "write_graph",
]
