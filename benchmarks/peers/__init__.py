"""Other ways of doing Linear Road, and what they cost beside Penstock."""
