from evenly.advice.alpha import recommend_alpha as recommend_alpha
from evenly.advice.recommendation import Advice as Advice
from evenly.advice.recommendation import Candidate as Candidate
from evenly.advice.tune_report import TuneReport as TuneReport
from evenly.advice.tune_report import tune as tune

__all__: list[str]
