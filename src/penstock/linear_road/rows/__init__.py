"""The input of Linear Road: its fields, its text form, what is refused, inputs of any size."""
