"""Trains below SQL: a short train is one job of plain tasks, with nothing to analyse, plan or compile."""
