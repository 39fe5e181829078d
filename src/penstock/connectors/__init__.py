"""What reads sources and writes outputs: the contract, and one module for each system. No Spark here."""
