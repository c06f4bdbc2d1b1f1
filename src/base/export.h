// LATTICE_EXPORT marks symbols that a shared library exports; all others are hidden.
#ifndef LATTICE_BASE_EXPORT_H_
#define LATTICE_BASE_EXPORT_H_

#if defined(__GNUC__)
#define LATTICE_EXPORT __attribute__((visibility("default")))
#else
#define LATTICE_EXPORT
#endif

#endif  // LATTICE_BASE_EXPORT_H_
