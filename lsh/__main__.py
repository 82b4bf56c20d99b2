"""`python -m lsh`: the command line."""

from lsh.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
