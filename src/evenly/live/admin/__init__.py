"""The admin port: state, metrics and changes of pools, for people and programs."""
