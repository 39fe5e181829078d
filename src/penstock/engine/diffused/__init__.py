"""The pure core of diffused joins: who is master, where tuples go, who produces a pair (Gu and Yu, Sect. 3; S06-S12).

It lies in the engine's room because both engines run it; the simulator, in `penstock.diffusion`, runs the same rule.
"""
