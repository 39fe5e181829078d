"""The optimizer's rules, one module each: every one gives single steps, Network -> Network.

A step may be taken only if the network then gives the same rows and the same dead letters. What a rule must
know for that stands in `conditions` and `columns`. Whether a step pays is asked of `rewrite.cost_model`.
"""
