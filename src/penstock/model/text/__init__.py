"""A network as YAML text, both ways without loss."""
