"""The console: see, question, steer and edit a running network in a browser (Aurora, Sect. 2.3; A32-A40).

`look/` makes JSON of what a network is and does, `act/` changes it, `routes/` puts both behind HTTP.
`Console(runtime)` serves a running network; a checkpoint alone can be looked at, not changed.
"""
