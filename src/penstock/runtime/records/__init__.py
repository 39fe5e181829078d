"""What trains did, for the catalog and for those who watch."""
