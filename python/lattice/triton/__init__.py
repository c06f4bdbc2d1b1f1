"""The recurrences on GPUs, in Triton. `import lattice` registers them where Triton is installed; docs/gpu.md has the rest.

Not yet run on hardware.
"""
