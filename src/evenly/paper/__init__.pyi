from evenly.paper import figures as figures

__all__: list[str]
