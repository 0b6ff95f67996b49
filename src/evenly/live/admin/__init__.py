"""The admin port: state, metrics and changes to pools, for people and programs."""
