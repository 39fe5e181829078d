"""Linear Road as a Penstock network, written with the public API only.

`road_network` is the network that a person can read and draw. `road_runtime` runs it on Spark. `warm_up`
warms a session up before anything is scored. `dead_letters` and `answer_files` read what a run has left.
Arasu et al., "Linear Road", VLDB 2004, section 3.
"""

from penstock.linear_road.network.road import road_network
from penstock.linear_road.network.start import Session, answer_files, dead_letters, road_runtime, warm_up

__all__ = ["Session", "answer_files", "dead_letters", "road_network", "road_runtime", "warm_up"]
