"""The documentation site: `python -m website` builds it from README.md, docs, notebooks and docstrings."""
