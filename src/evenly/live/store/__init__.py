"""Where the tokens of a fleet are kept: in the dispatcher's own process, or in Valkey or Redis for several."""
