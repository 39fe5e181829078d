"""How tuples enter a train: slices placed on tasks, decoded, admitted or refused."""
