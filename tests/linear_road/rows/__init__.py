"""The rows of an input: reading, refusing, copying."""
