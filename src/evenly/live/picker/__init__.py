"""The picker: a process that answers Envoys, keeps its state file and serves the admin port."""
