"""Later."""


class EvenlyMiddleware:
    """Later."""
