"""Messages that tensorboard's package lacks, with TensorFlow's field numbers. Compiled by `make protos`."""
