"""Float64 references, written from the mathematics and judged by the golden vectors; slow on purpose."""
