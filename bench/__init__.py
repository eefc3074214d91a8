"""The bench: measures this machine to llama-bench's protocol and writes the record."""
