"""The input of Linear Road: its fields, its text form, which rows are refused, inputs of any size."""
