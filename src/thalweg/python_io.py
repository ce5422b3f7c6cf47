"""tf.python_io: TFRecord files outside of graphs."""

from thalweg.library.missing import missing
from thalweg.library.record_io import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordWriter,
    tf_record_iterator,
)

__getattr__ = missing(__name__)

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]
