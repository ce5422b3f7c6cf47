"""What tests of thalweg, and of programs that use it, are written with."""
