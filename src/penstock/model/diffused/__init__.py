"""Diffused joins: who is master, where tuples go, who produces a pair (Gu and Yu, Sect. 3; S06-S12).

It is part of the model because it defines what tickets and commits say about a join, and because the engine,
the contract and the simulator must follow the same rule. The reference engine does not depend on it for its
answers: it answers a diffused join as any join (two lists and a comparison). So a fault here shows in every
comparison.
"""
