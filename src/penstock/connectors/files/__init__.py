"""Files: which there are, how they are cut into slices and decoded, and how outputs are written."""
