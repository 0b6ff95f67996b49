from evenly.logs.detect import FORMATS as FORMATS
from evenly.logs.read import read_log as read_log
from evenly.logs.session_log import BadLine as BadLine
from evenly.logs.session_log import SessionLog as SessionLog

__all__: list[str]
