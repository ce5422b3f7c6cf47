"""What a user could have written with public names: variables, scopes, math sugar, layers, training."""
