"""Long runs of the fuzz targets and of differential problems, behind `./lattice fuzz`."""
