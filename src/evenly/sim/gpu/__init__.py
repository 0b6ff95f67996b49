"""The aggregate chain on a GPU: one thread per replication."""
