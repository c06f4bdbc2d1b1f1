// Defaults of the sanitizers for test programs and fuzz targets: what UBSan finds ends the program. Without this it prints
// a line and goes on, and the test passes. UBSAN_OPTIONS of the environment still wins.
extern "C" __attribute__((visibility("default"), used)) const char* __ubsan_default_options() {
  return "halt_on_error=1:print_stacktrace=1";
}
