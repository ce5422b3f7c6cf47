"""Sets of element types, as op definitions write them. Named as TensorFlow's registrations name them."""

FLOATS = "{half, bfloat16, float, double}"
REAL = "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
NUMBER = (
    "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
    "quint16, uint16, complex128, half, uint32, uint64}"
)
INDEX = "{int32, int64}"
