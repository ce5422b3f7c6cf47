"""The `thalweg` command."""

from thalweg.cli.main import main

__all__ = ["main"]
