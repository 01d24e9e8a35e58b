"""Results of other benchmark clients, each number with the definition that its tool gives it. Pure."""
