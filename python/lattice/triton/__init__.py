"""The recurrences on GPUs, in Triton. `import lattice` registers them (dispatch.py); docs/gpu.md has the rest.

Not yet run on hardware.
"""
