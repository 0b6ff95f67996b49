"""evenly keeps long-lived concurrent work evenly spread over many servers."""
