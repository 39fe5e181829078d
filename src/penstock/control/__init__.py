"""Control by quality of service: measures, and decisions as pure functions of them (Aurora, Sect. 4, 5)."""
