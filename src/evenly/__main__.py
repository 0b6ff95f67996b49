"""`python -m evenly` is the `evenly` command."""

from evenly.cli.main import run

if __name__ == "__main__":
    run()
