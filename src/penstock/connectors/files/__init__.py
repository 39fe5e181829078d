"""Files: how they are found, cut into slices and decoded, and how outputs are written."""
