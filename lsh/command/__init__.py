"""The command line: `lsh.command.main.main` runs it, one module a command."""
