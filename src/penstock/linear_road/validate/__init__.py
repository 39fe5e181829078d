"""`penstock lr validate`: an independent oracle for Linear Road answers.

Idea: the right answers follow from the whole input by the definitions of the benchmark (Arasu et al., VLDB
2004, section 3). So they are written as SQL over the whole input, one module for each topic, and share no
code with any pipeline: `refused`, `trips`, `statistics`, `accidents`, `tolls` (notices and alerts),
`accounts`, `daily`, `travel`. Then `answer_files`, `comparison`, `why` and `report` judge what a system
under test answered.
"""

from penstock.linear_road.validate.report import Verdict, show
from penstock.linear_road.validate.validation import validate

__all__ = ["Verdict", "show", "validate"]
