// Exponentials, logarithms and angles whose results have the same bits on every machine. Those of C libraries differ in
// the last place: glibc takes fused multiply-adds where the CPU has them, and the C library of a web page is another one.
//
// Made of additions, multiplications, divisions and roundings only, which IEEE 754 defines, so the code around them must be
// compiled without contraction and fast-math, as everything here is. Errors are below 3 units in the last place, of Power
// below 3 (1 + |y log x|).
#ifndef LATTICE_BASE_FUNCTIONS_H_
#define LATTICE_BASE_FUNCTIONS_H_

namespace lattice {

// e^x; infinity above 709.8, 0 below -745.2, NaN of a NaN.
double Exp(double x);

// The natural logarithm; -infinity of 0, NaN of negative numbers.
double Log(double x);

// log(1 + x), accurate also where x is small.
double Log1p(double x);

// x^y for x > 0.
double Power(double x, double y);

struct SineCosine {
  double sine, cosine;
};
// Of an angle in radians. From 1.57 million on, positive or negative, it is the C library that computes them.
SineCosine SineAndCosine(double angle);

}  // namespace lattice

#endif  // LATTICE_BASE_FUNCTIONS_H_
