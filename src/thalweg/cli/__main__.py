"""`python -m thalweg.cli`: the `thalweg` command, where it is not installed."""

from thalweg.cli.main import main

if __name__ == "__main__":
    main(prog_name="thalweg")
