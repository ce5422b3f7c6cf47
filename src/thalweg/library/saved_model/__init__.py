"""tf.saved_model: models with their variables, assets and signatures, to be served elsewhere."""
