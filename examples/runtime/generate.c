/* Continues a text with a trained model: generate MODEL TEXT [TOKENS]. No torch, no Python, no C++. */
#include <lattice/runtime/lattice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int code) {
  if (code == LATTICE_OK) return;
  fprintf(stderr, "%s\n", lattice_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc < 3) return fprintf(stderr, "usage: generate MODEL TEXT [TOKENS]\n"), 2;
  lattice_model* model;
  lattice_session* session;
  must(lattice_model_open(argv[1], 0, &model));
  must(lattice_session_new(model, &session));

  int32_t prompt[4096];
  size_t count;
  must(lattice_encode(model, argv[2], strlen(argv[2]), prompt, 4096, &count));
  must(lattice_session_append(session, prompt, count < 4096 ? count : 4096));

  const lattice_sampling sampling = {.temperature = 0, .top_p = 1};
  for (int left = argc > 3 ? atoi(argv[3]) : 100; left > 0; --left) {
    int32_t token;
    char text[256];
    size_t bytes;
    must(lattice_session_sample(session, &sampling, &token));
    must(lattice_decode(model, token, text, sizeof text, &bytes));
    fwrite(text, 1, bytes < sizeof text ? bytes : sizeof text, stdout);
    must(lattice_session_append(session, &token, 1));
  }
  lattice_session_free(session);
  lattice_model_free(model);
  return 0;
}
