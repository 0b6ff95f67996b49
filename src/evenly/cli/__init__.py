"""The command line: parse, call, print. No logic lives here, and nothing heavy is imported until it is needed."""
