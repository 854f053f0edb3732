/* hypot as the C library had it before 2.35, for programs that are to run with 2.34 (DsatPortable.cmake). Eigen calls
 * it. The newer one differs in errno alone. */
double older_hypot(double, double);
__asm__(".symver older_hypot,hypot@GLIBC_2.2.5");
double __wrap_hypot(double, double);
double __wrap_hypot(double a, double b) { return older_hypot(a, b); }
