"""tf.nn.rnn_cell: recurrent cells. Names from thalweg.library.rnn; what each does is said there."""

from thalweg.library.missing import missing
from thalweg.library.rnn.cell_base import RNNCell
from thalweg.library.rnn.cells import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell, LSTMStateTuple
from thalweg.library.rnn.linear import linear as _linear  # programs of 2016 reach for it
from thalweg.library.rnn.wrappers import DeviceWrapper, DropoutWrapper, MultiRNNCell, ResidualWrapper

__getattr__ = missing(__name__)

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "RNNCell",
    "ResidualWrapper",
]
