"""Pages for browsers: static files that ship with the package. `assets.py` finds them; others serve them."""
