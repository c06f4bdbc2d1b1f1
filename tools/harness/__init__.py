"""`./lattice eval tasks`, the server and lattice.hf against lm-evaluation-harness, request by request."""
