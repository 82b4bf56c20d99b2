"""`python -m lsh`: the command line."""

from lsh.command.main import main

if __name__ == "__main__":
    raise SystemExit(main())
