"""A run as OpenTelemetry spans, made of its records and sent to a collector when one is configured."""
