# Writes OUTPUT, a header with the commit of SOURCE, when it differs from what is there. Run at every build.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  set(commit unknown)
else()
  execute_process(COMMAND git -C ${SOURCE} status --porcelain -- src cmake CMakeLists.txt OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit "+changes")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#ifndef LATTICE_REPRODUCE_COMMIT_H_\n#define LATTICE_REPRODUCE_COMMIT_H_\n\nnamespace lattice::reproduce {\n\ninline constexpr char kCommit[] = \"@commit@\";\n\n}  // namespace lattice::reproduce\n\n#endif  // LATTICE_REPRODUCE_COMMIT_H_\n" @ONLY)
