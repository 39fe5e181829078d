"""`penstock standing`: the service and its client."""
