"""The topic `qos` of the command line, one module a command."""
