from evenly.live.agents.agent import Agent as Agent
from evenly.live.agents.agent import PoolFullError as PoolFullError
from evenly.live.agents.agent import Session as Session
from evenly.live.agents.asgi import EvenlyMiddleware as EvenlyMiddleware

__all__: list[str]
