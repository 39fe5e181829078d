"""Where tuples leave a train: files, connection points, sinks in the driver."""
