"""The REST door: parse, one engine call, format."""
