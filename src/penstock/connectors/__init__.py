"""What reads sources and writes outputs: the contract, and one module a system. No Spark here."""
