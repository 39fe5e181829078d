"""One run of one ticket: as DataFrames, packed all the way, or as a job of plain tasks."""
