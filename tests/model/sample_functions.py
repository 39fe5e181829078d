"""Functions that a YAML text can name, for the tests of the model."""


def one(batch):
    return batch


def two(batch, state):
    return batch, state


def rows():
    return []


def seen(table):
    pass
