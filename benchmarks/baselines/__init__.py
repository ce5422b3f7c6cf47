"""Ways to place a graph that thalweg's placer is compared with. All work on thalweg's Problem and none knows
more of it than the placer does; what they choose is judged by the same simulation."""
