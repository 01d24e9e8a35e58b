"""The load generator: prompts, a streaming client, and the metrics of a round."""
