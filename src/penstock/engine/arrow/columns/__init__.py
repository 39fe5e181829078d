"""Work on whole columns that the boxes share: expressions, aggregates, grouping, hashing."""
