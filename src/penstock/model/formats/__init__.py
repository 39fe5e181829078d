"""Where tuples come from and go to, as descriptions: options, schemas, their YAML form."""
