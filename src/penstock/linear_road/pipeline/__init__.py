"""Linear Road as a Penstock network (Arasu et al., "Linear Road", VLDB 2004, section 3), written with the public API only.

`network` is the picture that a person can read and draw; `road_runtime` runs it on Spark; `warm_up` brings a session to
its working temperature before anything is scored; `dead_letters` and `answer_files` read what a run has left.
"""

from penstock.linear_road.pipeline.road import network
from penstock.linear_road.pipeline.run import answer_files, dead_letters, road_runtime, warm_up

__all__ = ["answer_files", "dead_letters", "network", "road_runtime", "warm_up"]
